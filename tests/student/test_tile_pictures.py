"""The tiles as bands: a right attempt is never drawn as a wrong one, and of a wrong one it shows what is wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from manyheads.authoring.files import record_heads
from manyheads.box.worker.messages import TraceCall
from manyheads.box.worker.tracing import trace
from manyheads.checks.cast import cast
from manyheads.checks.local import namespace_of
from manyheads.diagnosis.recording_file import read
from manyheads.student import heads
from manyheads.student.bands import Band, is_none, summary
from manyheads.student.choose_example import examples
from manyheads.student.crops import TABLES, TIMES
from manyheads.student.example import Example, with_heads
from manyheads.student.growing_tables import sides_of
from manyheads.student.tile_pictures import tile_bands
from tests.edited import edited
from tests.student.real import course
from tests.student.tiled import RECORDED, RIGHT, traced

TILES, MAXIMUM, SUM = "tiles in summed, head 0, in the order of the visits", "running maximum of ", "running sum of "
LATER = "queries 4 to 6"
MASK = ".masked_fill(hidden, -math.inf)"
MEND = "s = s * (m - new).exp() + p.sum(-1)"


def drawn(source: str) -> list[Band]:
    return tile_bands(RECORDED, traced(source))


def told(source: str) -> list[str]:
    return summary(drawn(source))


def test_tiles_in_their_order_the_running_maximum_and_the_running_sum() -> None:
    tiles, maximum, total = drawn(RIGHT)
    expected, yours, apart = tiles.panels
    assert expected.frames == yours.frames
    assert [frame.word for frame in yours.frames] == ["1", "2", "3", "4", "5"]
    assert yours.values is not None
    assert yours.values[4:, 3:6].tolist() == [[4, 4, float("-inf")], [4, 4, 4], [4, 4, 4]]
    assert apart.values is not None
    assert not apart.values.any()
    assert (maximum.column_labels, maximum.row_labels) == (("3", "4", "5"), ("4", "5", "6"))
    assert total.beside
    assert told(RIGHT) == [
        f"{TILES}: 5 tiles; what counts is as expected",
        f"{MAXIMUM}{LATER}: as expected",
        f"{SUM}{LATER}: as expected",
    ]


def test_the_maximum_rises_from_tile_to_tile() -> None:
    wanted = drawn(RIGHT)[1].panels[0].values
    assert wanted is not None
    assert bool((wanted[:, 1:] >= wanted[:, :-1]).all())
    assert bool((wanted[:, 1:] > wanted[:, :-1]).any())


def test_another_order_is_as_good() -> None:
    future = edited(RIGHT, ("range(0, top + x.shape[-2], columns)", "range(0, T, columns)"))
    assert (
        told(future)[0] == f"{TILES}: 6 tiles, other than the reference's, which is as good; what counts is as expected"
    )
    assert not any(band.differs for band in drawn(future))


def test_scores_that_count_and_should_not() -> None:
    shown = drawn(edited(RIGHT, (MASK, "")))
    assert shown[0].differs
    assert summary(shown)[0] == f"{TILES}: 5 tiles; 17 of the scores count that should not"
    assert shown[1].title == f"{MAXIMUM}queries 0 to 3"  # the first that differs
    assert shown[1].differs


def test_tiles_that_are_left_out() -> None:
    one = told(edited(RIGHT, ("range(0, T, rows)", "range(0, T // rows * rows, rows)")))
    assert one[0] == f"{TILES}: 2 tiles; 18 of the scores that should count do not"
    assert one[1:] == [f"{MAXIMUM}queries 0 to 3: as expected", f"{SUM}queries 0 to 3: as expected"]


def test_a_maximum_that_is_not_carried() -> None:
    _, maximum, *_ = drawn(edited(RIGHT, ("m = new\n", "pass\n"), ("sums.append(m", "sums.append(new")))
    assert maximum.title == f"{MAXIMUM}queries 0 to 3"
    assert maximum.differs
    apart = maximum.panels[-1].values
    assert apart is not None
    assert is_none(apart.clamp(min=0))  # it is only too small


def test_a_sum_that_is_not_mended() -> None:
    tiles, maximum, total = drawn(edited(RIGHT, (MEND, "s = s + p.sum(-1)")))
    assert [band.differs for band in (tiles, maximum, total)] == [False, False, True]


def test_other_numbers_than_a_maximum_are_as_good() -> None:
    largest = "new = torch.maximum(m, scores.amax(-1))"
    none = drawn(edited(RIGHT, (largest, "new = torch.zeros_like(s)"), ("(m - new)", "(new - new)")))
    hidden_ones_too = drawn(edited(RIGHT, (largest, "new = torch.maximum(m, (x @ y.mT).amax(-1))")))
    assert not any(band.differs for band in (*none, *hidden_ones_too))
    assert none[1].panels[1].note.startswith("yours holds its scores against other numbers: as good as a maximum")


@pytest.mark.parametrize("body", ["return q.sum(-1)", "raise ValueError"])
def test_where_no_tiles_are_seen_it_says_so(body: str) -> None:
    (line,) = told(f"def summed(q, k, rows, columns): {body}\n")
    assert line == f"{TILES}: the tiles of your code cannot be followed here; course trace shows its lines"


def test_the_whole_square_is_one_tile() -> None:
    tiles, maximum = told("def summed(q, k, rows, columns): return (q @ k.mT).sum(-1)\n")
    assert tiles == f"{TILES}: 1 tile, 1 of them larger than 4 × 3; 21 of the scores count that should not"
    assert maximum == f"{MAXIMUM}queries 0 to 6: what your tiles hold their scores against cannot be seen"


def test_a_right_answer_from_elsewhere_is_not_drawn_as_a_wrong_one() -> None:
    unseen = RIGHT.replace("def summed(", "def tiled(") + (
        "def summed(q, k, rows, columns):\n    half = tiled(q[..., :4, :], k[..., :4, :], rows, columns)\n"
        "    a, b = q.numpy().astype('float64'), k.numpy().astype('float64')\n"
        "    square = torch.from_numpy(a[:, 4:] @ b.transpose(0, 2, 1)).float()\n"
        "    hidden = torch.arange(7) > torch.arange(4, 7)[:, None]\n"
        "    return torch.cat((half, square.masked_fill(hidden, -math.inf).exp().sum(-1).log()), -1)\n"
    )
    assert not any(band.differs for band in drawn(unseen))


def test_a_square_beside_the_tiles_is_told() -> None:
    (first, *_) = drawn(edited(RIGHT, ("    sums = []\n", "    sums, square = [], q @ k.mT\n")))
    assert not first.differs
    assert first.words == "6 tiles, 1 of them larger than 4 × 3; what counts is as expected"
    assert first.panels[1].values is not None
    assert float(first.panels[1].values[0, 0]) == 2  # the square is only looked at, or not even that


def test_nothing_is_drawn_where_nothing_is_recorded() -> None:
    assert tile_bands(replace(RECORDED, tiles=None), traced(RIGHT)) == []


def test_what_was_visited_before_an_error_is_drawn() -> None:
    stopped = edited(RIGHT, (MEND, MEND + "\n            if top: raise ValueError"))
    assert told(stopped)[0] == f"{TILES}: 3 tiles, then your code stopped"


EXERCISE = next(each for each in course().exercises if any(each.tiled(name) for name in each.shapes))
ATTEMPTS = sorted((course().root / "grader" / "right" / EXERCISE.id).glob("*.py"))
UNSEEN = ("halves_joined", "one_query_at_a_time")  # what they compute are no tiles in order


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Example:
    """The call of the course that is drawn, with what a release records of it."""
    fingerprints = read(EXERCISE.fingerprints)
    path = tmp_path_factory.mktemp("heads") / "heads.safetensors"
    path.write_bytes(record_heads(EXERCISE, fingerprints))
    (example,) = (each for each in examples(EXERCISE, fingerprints, by_head=True) if each.tiled)
    return with_heads(example, heads.read(path))


@pytest.mark.recorded
def test_the_course_shows_tiles_of_all_kinds(recorded: Example) -> None:
    assert recorded.tiles is not None
    assert len(recorded.tiles.boxes) == 6
    assert len({tuple(box[2:].tolist()) for box in recorded.tiles.boxes}) == 3  # smaller at the right and at the bottom
    assert all(each.tiles is not None for each in recorded.instead)


@pytest.mark.recorded
def test_the_course_shows_a_sequence_with_the_triangle_at_the_lower_right() -> None:
    shown = [
        sides_of(example)
        for exercise in course().exercises
        for example in examples(exercise, read(exercise.fingerprints), by_head=True)
        if example.call.then
    ]
    assert shown == [[(9, 9), (4, 13)]]


@pytest.mark.recorded
@pytest.mark.parametrize("path", ATTEMPTS, ids=lambda path: path.stem)
def test_no_right_attempt_of_the_course_is_drawn_as_a_wrong_one(recorded: Example, path: Path) -> None:
    message = TraceCall(cast(recorded.call, "float32"), TABLES, TIMES)
    shown = tile_bands(recorded, trace(namespace_of(path), message, str(path)))
    assert not any(band.differs for band in shown)
    assert (shown[0].panels[1].values is None) is (path.stem in UNSEEN)
