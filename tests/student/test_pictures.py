"""What is drawn: an answer beside the expected one, moved numbers by their addresses, heads first;
and of a class what is wrong.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from manyheads.box.connection import Box
from manyheads.course import Course
from manyheads.result import Outcome, Result
from manyheads.student import pictures as pictures_module
from manyheads.student.pictures import (
    DRAWN,
    Picture,
    compare_tables,
    difference,
    draw_wrong,
    drawable,
    pictures,
)
from manyheads.student.trace import TABLES, TIMES
from tests import make
from tests.student.real import FollowSource, solution

INF, NAN = float("inf"), float("nan")
MASK = """
import torch
def causal_mask(T, device=None): return torch.ones(T, T, dtype=torch.bool).tril()
def mask_scores(scores, mask): return scores.masked_fill(~mask, {fill})
def causal_weights(scores): return mask_scores(scores, causal_mask(scores.shape[-1])).softmax(-1)
"""
MERGE = "def merge_heads(y): return y.transpose(1, 2).flatten(2)\n"
SPLIT = "def split_heads(x, n_head): B, T, C = x.shape; return {body}\n" + MERGE
FIRST = "x.unflatten(-1, (n_head, -1)).transpose(1, 2)"


@pytest.fixture
def draw(follow_source: FollowSource):
    def draw(id_: str, source: str | None = None) -> list[Picture]:
        return pictures(follow_source(id_, source, crop=TABLES, times=TIMES))

    return draw


@pytest.mark.parametrize(
    ("body", "head", "words", "row", "heads"),
    [
        (FIRST, "head 0", "as expected", [100, 101, 102, 103, 104, 105], [0] * 6),
        (
            "x.view(B, n_head, T, -1)",
            "head 0",
            "48 of 54 numbers are in the wrong place",
            [6, 7, 8, 9, 10, 11],
            [1] * 6,
        ),
        (
            "x.view(B, T, -1, n_head).permute(0, 3, 1, 2)",
            "head 0",
            "45 of 54 numbers are in the wrong place",
            [100, 105, 110, 115, 120, 125],
            [0, 0, 1, 2, 3, 4],
        ),
        (
            f"(lambda y: torch.cat([y[:, :3], y[:, 3:].flip(1)], 1))({FIRST})",
            "head 3",
            "54 of 54 numbers are in the wrong place",
            [124, 125, 126, 127, 128, 129],
            [4] * 6,
        ),
        (
            f"torch.cat([{FIRST}[:1], {FIRST}[1:].flip(1)])",
            "sequence 1, head 0",
            "54 of 54 numbers are in the wrong place",
            [10124, 10125, 10126, 10127, 10128, 10129],
            [4] * 6,
        ),
        (
            f"{FIRST}.flip(0)",
            "head 0",
            "54 of 54 numbers are in the wrong place",
            [10100, 10101, 10102, 10103, 10104, 10105],
            [0] * 6,
        ),
        (f"{FIRST} * 2", "head 0", "54 of 54 numbers are not among x's", [-1] * 6, [-1] * 6),
        (f"{FIRST} * 1.0000001", "head 0", "as expected", [100, 101, 102, 103, 104, 105], [0] * 6),
    ],
    ids=[
        "right",
        "straight to heads",
        "interleaved",
        "the last heads",
        "one sequence",
        "other sequences",
        "changed",
        "rounded",
    ],
)
def test_a_reshape_is_drawn_by_address(draw, body, head, words, row, heads):
    split, merge = draw("reshape_dance", "import torch\n" + SPLIT.format(body=body))
    assert split.caption == f"split_heads(x, n_head=5), {head}: {words}"
    assert [panel.title for panel in split.panels] == (
        ["expected", "yours"] if split.differs else ["yours"]
    )
    assert split.panels[-1].values[1].tolist() == row
    assert split.panels[-1].heads is not None
    assert split.panels[-1].heads[1].tolist() == heads
    assert (merge.words, merge.panels[0].title) == ("as expected", "yours, columns 0 to 11 of 30")


def test_a_wide_reshape_is_cut_where_it_goes_wrong(draw):
    merge = draw(
        "reshape_dance", SPLIT.format(body=FIRST).replace("y.tr", "y[:, [0, 1, 2, 4, 3]].tr")
    )[1]
    assert (merge.words, merge.start) == ("108 of 270 numbers are in the wrong place", (0, 16))
    assert [panel.title for panel in merge.panels] == [
        f"{label}, columns 16 to 27 of 30" for label in ("expected", "yours")
    ]
    assert [panel.values[1].tolist()[:4] for panel in merge.panels] == [
        [116, 117, 118, 119],
        [116, 117, 124, 125],
    ]


def test_the_mistake_is_drawn_and_what_is_right_alone(draw):
    mask, scores, weights = draw("causal_mask", MASK.format(fill=0.0))
    assert mask.caption == "causal_mask(T=9): as expected"
    assert [(panel.title, panel.kind) for panel in mask.panels] == [("yours", "mask")]
    assert (
        scores.caption
        == "mask_scores(scores, mask): 54 of 99 numbers are −∞ in one of the two only"
    )
    assert weights.caption.startswith("causal_weights(scores): the largest difference is 0.")
    expected, yours, apart = weights.panels
    assert [panel.kind for panel in weights.panels] == ["weights", "weights", "difference"]
    assert torch.allclose(apart.values, (yours.values - expected.values).double())
    assert {(picture.rows, picture.columns) for picture in (mask, scores, weights)} == {
        ("query position", "key position")
    }


@pytest.mark.parametrize(
    ("wanted", "mine", "words"),
    [
        ([1.0, -INF], [1.0, -1e30], "as expected"),
        ([1.0, 0.0], [1.5, 0.0], "the largest difference is 0.5"),
        ([1.0, 0.0], [INF, 0.0], "the largest difference is inf"),
        ([1.0, -INF], [1.0, 0.0], "1 of 2 numbers are −∞ in one of the two only"),
        ([1.0, 0.0], [NAN, 0.0], "1 of 2 numbers are NaN"),
        ([True, False], [True, True], "1 of 2 differ"),
    ],
)
def test_a_table_is_told_in_words(wanted, mine, words):
    panel_kind = "mask" if wanted[0] is True else "numbers"
    picture = compare_tables(
        "f(x)", torch.tensor([wanted]), torch.tensor([mine]), "", "", panel_kind
    )
    assert (picture.words, picture.differs) == (words, words != "as expected")


def test_what_is_hidden_in_one_of_two_alone_is_no_number():
    low = torch.finfo(torch.float32).min
    apart = difference(
        torch.tensor([low, 1.0, 2.0, NAN, low]), torch.tensor([-INF, -INF, 0.5, 0.0, 1.0])
    )
    assert apart[[0, 2]].tolist() == [0.0, 1.5]
    assert apart.isnan().tolist() == [False, True, False, True, True]


@pytest.mark.parametrize(
    ("body", "note"),
    [
        ("raise NotImplementedError", "nothing is written on line 1 yet"),
        ("return 1 / 0", "your code raised ZeroDivisionError on line 1"),
        ("return torch.ones(T)", "yours has the shape (T)"),
        ("return None", "yours is no tensor"),
    ],
)
def test_where_there_is_nothing_to_compare_it_says_why(draw, body, note):
    tail = MASK.format(fill=-INF).split("bool).tril()\n")[1].replace("-inf", "float('-inf')")
    picture = draw("causal_mask", f"def causal_mask(T, device=None): {body}\nimport torch\n{tail}")[
        0
    ]
    assert picture.caption == f"causal_mask(T=9): {note}"
    assert ([panel.title for panel in picture.panels], picture.differs) == (["expected"], False)


def test_what_is_not_there_yet_is_no_error_and_a_reshape_is_expected_by_address(draw):
    attend = draw("attention_scores", solution("attention_scores").split("def attend(")[0])[-1]
    assert attend.caption == "attend(q, k, v): not defined yet"
    merge = draw("reshape_dance", SPLIT.format(body=FIRST).replace(MERGE, ""))[1]
    assert (merge.words, merge.panels[0].kind) == ("not defined yet", "addresses")


SCRIPT = "01_running_mean.py"
STUB = (make.REPOSITORY / "tests/tiny_course/exercises/averages" / SCRIPT).read_bytes()
NO_DIVISION = "def running_mean(x):\n    return x.cumsum(0) / len(x)\n"


def graded_result(student: str, *outcomes: Outcome) -> Result:
    checks = [make.check(f"c{i}", outcome=end) for i, end in enumerate(outcomes)]
    return make.result(student, make.exercise("running_mean", *checks, max_score=4))


@pytest.fixture
def draw_sources(
    tiny: Course, box: Box, tmp_path: Path
) -> Callable[..., list[tuple[Picture, ...]]]:
    """The pictures of these sources, a student each."""

    def draw(*sources: str) -> list[tuple[Picture, ...]]:
        folders = {
            (student, "averages"): tmp_path / student
            for student, _ in zip("abc", sources, strict=False)
        }
        for folder, source in zip(folders.values(), sources, strict=True):
            folder.mkdir()
            (folder / SCRIPT).write_text(source, encoding="utf-8")
        targets = drawable(
            tiny, [graded_result(student, "failed") for student, _ in folders], folders
        )
        return [pictures for _, pictures in draw_wrong(tiny, box, targets)]

    return draw


def test_wrong_numbers_stand_beside_the_recorded_ones(draw_sources):
    ((picture,),) = draw_sources(NO_DIVISION)
    expected, yours, apart = (panel.values for panel in picture.panels)
    assert picture.title == "running_mean(x)"
    torch.testing.assert_close(yours[0, -1], expected[0, -1])  # the mean of all of them is right
    torch.testing.assert_close(apart, (yours - expected).double())


@pytest.mark.parametrize(
    "source",
    [
        "def running_mean(x):\n    return x.cumsum(0) / (1 + x.new_ones(len(x)).cumsum(0) - 1)\n",
        "def running_mean(x):\n    raise ValueError('no')\n",
        "def running_mean(x):\n    return x[1:]\n",
        "def running_mean(x):\n    import os\n    os._exit(0)\n",
        "def running_mean(x)\n",
        "import nothing_of_that_name\n",
        "def running_mean(x):\n    return None\n",
    ],
    ids=[
        "right",
        "raises",
        "another shape",
        "ends",
        "no Python",
        "cannot be imported",
        "no tensor",
    ],
)
def test_where_a_picture_tells_nothing_there_is_none(draw_sources, source):
    assert draw_sources(source) == [()]


def test_what_two_handed_in_is_run_once_and_there_is_an_end(draw_sources, monkeypatch):
    picture = Picture("f(x)", "", (), "", "", differs=True)
    runs = iter([[replace(picture, differs=False), *[picture] * (DRAWN + 1)]])
    monkeypatch.setattr(pictures_module, "pictures", lambda _: next(runs))
    assert draw_sources(NO_DIVISION, NO_DIVISION) == [(picture,) * DRAWN] * 2


@pytest.mark.parametrize(
    "content", [None, b"\xff\xfe not text \x00", STUB], ids=["missing", "unreadable", "the stub"]
)
def test_where_nothing_was_written_nothing_is_run(tiny, box, monkeypatch, tmp_path, content):
    if content is not None:
        (tmp_path / SCRIPT).write_bytes(content)
    (target,) = drawable(tiny, [graded_result("a", "error")], {("a", "averages"): tmp_path})
    monkeypatch.setattr(type(box), "attempt", None)
    assert list(draw_wrong(tiny, box, [target])) == [(target.key, ())]


@pytest.mark.parametrize(
    ("outcomes", "is_drawn"),
    [
        (("passed", "failed"), True),
        (("passed", "error"), True),
        (("passed", "passed"), False),
        (("failed", "crashed"), False),
        (("failed", "timeout"), False),
        (("missing",), False),
    ],
)
def test_only_what_failed_and_ended_well_is_run_again(tiny, outcomes, is_drawn):
    assert (
        bool(drawable(tiny, [graded_result("a", *outcomes)], {("a", "averages"): Path("here")}))
        is is_drawn
    )


def test_who_is_not_in_the_folder_or_not_in_the_course_is_not_drawn(tiny):
    elsewhere = graded_result("a", "failed").model_copy(update={"assignment": "other"})
    folders = {("a", "other"): Path("here"), ("b", "averages"): Path("here")}
    assert drawable(tiny, [graded_result("a", "failed"), elsewhere], folders) == []
