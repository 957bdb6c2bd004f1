"""Pictures of an attempt's output beside the expected output.

The numbers of a reshape are drawn as addresses: 10000·sequence + 100·token + channel of the input.
"""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from manyheads.result import Outcome
from manyheads.student import pictures as pictures_module
from manyheads.student.pictures import (
    DRAWN,
    Picture,
    compare_tables,
    difference,
    draw_wrong,
    drawable,
)
from tests import make
from tests.make import cases
from tests.student.real import reference_source

INF, NAN = float("inf"), float("nan")
NO_ADDRESS = -1  # drawn for a number that is not in the input
WITHOUT_MASK = """
import torch
def mask_scores(scores, mask): return scores.masked_fill(~mask, -torch.inf)
def causal_weights(scores): return mask_scores(scores, causal_mask(scores.shape[-1])).softmax(-1)
"""
MASK = (
    WITHOUT_MASK
    + "def causal_mask(T, device=None): return torch.ones(T, T, dtype=torch.bool).tril()\n"
)
MERGE = "def merge_heads(y): return y.transpose(1, 2).flatten(2)\n"
SPLIT = "import torch\ndef split_heads(x, n_head): B, T, C = x.shape; return {body}\n" + MERGE
RIGHT_SPLIT = "x.unflatten(-1, (n_head, -1)).transpose(1, 2)"


def addresses(sequence=0, token=1, channels=range(6)):
    """Return the addresses of some channels of one token of the input."""
    return [10_000 * sequence + 100 * token + channel for channel in channels]


# row: (body of split_heads, caption, addresses in row 1 of the drawn table, heads of those
# addresses); the input has 2 sequences, 9 tokens and 5 heads of 6 channels
SPLITS = {
    "right": (RIGHT_SPLIT, "head 0: as expected", addresses(), [0] * 6),
    "no transpose": (
        "x.view(B, n_head, T, -1)",
        "head 0: 48 of 54 numbers are in the wrong place",
        addresses(token=0, channels=range(6, 12)),
        [1] * 6,
    ),
    "channels of a head are not adjacent": (
        "x.view(B, T, -1, n_head).permute(0, 3, 1, 2)",
        "head 0: 45 of 54 numbers are in the wrong place",
        addresses(channels=range(0, 30, 5)),
        [0, 0, 1, 2, 3, 4],
    ),
    "heads 3 and 4 are swapped": (
        f"(lambda y: torch.cat([y[:, :3], y[:, 3:].flip(1)], 1))({RIGHT_SPLIT})",
        "head 3: 54 of 54 numbers are in the wrong place",
        addresses(channels=range(24, 30)),
        [4] * 6,
    ),
    "the heads of sequence 1 are reversed": (
        f"torch.cat([{RIGHT_SPLIT}[:1], {RIGHT_SPLIT}[1:].flip(1)])",
        "sequence 1, head 0: 54 of 54 numbers are in the wrong place",
        addresses(sequence=1, channels=range(24, 30)),
        [4] * 6,
    ),
    "other numbers": (
        f"{RIGHT_SPLIT} * 2",
        "head 0: 54 of 54 numbers are not among x's",
        [NO_ADDRESS] * 6,
        [NO_ADDRESS] * 6,
    ),
    "other numbers by rounding": (
        f"{RIGHT_SPLIT} * 1.0000001",
        "head 0: as expected",
        addresses(),
        [0] * 6,
    ),
}


@cases("body, text, addresses_in_row, heads_in_row", SPLITS)
def test_a_reshape_is_drawn_as_addresses_of_the_input(
    draw, body, text, addresses_in_row, heads_in_row
):
    """The first table with a wrong address is drawn: one head of one sequence."""
    split, _ = draw("reshape_dance", SPLIT.format(body=body))
    assert split.caption == f"split_heads(x, n_head=5), {text}"
    titles = [panel.title for panel in split.panels]
    assert titles == (["expected", "yours"] if split.differs else ["yours"])
    yours = split.panels[-1]
    assert yours.values[1].tolist() == addresses_in_row
    assert yours.heads[1].tolist() == heads_in_row


@cases("body", {name: body for name, (body, *_) in SPLITS.items()})
def test_a_wrong_function_does_not_change_the_picture_of_the_next_one(draw, body):
    """merge_heads is right, and is drawn with recorded inputs, not with those of split_heads."""
    _, merge = draw("reshape_dance", SPLIT.format(body=body))
    assert (merge.words, merge.panels[0].title) == ("as expected", "yours, columns 0 to 11 of 30")


def test_a_wide_picture_begins_at_the_first_wrong_columns(draw):
    source = SPLIT.format(body=RIGHT_SPLIT).replace("y.tr", "y[:, [0, 1, 2, 4, 3]].tr")
    merge = draw("reshape_dance", source)[1]
    assert (merge.words, merge.start) == ("108 of 270 numbers are in the wrong place", (0, 16))
    assert [(panel.title, panel.values[1].tolist()[:4]) for panel in merge.panels] == [
        ("expected, columns 16 to 27 of 30", [116, 117, 118, 119]),
        ("yours, columns 16 to 27 of 30", [116, 117, 124, 125]),
    ]


def test_a_wrong_output_is_drawn_beside_the_expected_one(draw):
    mask, scores, weights = draw("causal_mask", MASK.replace("-torch.inf", "0.0"))
    assert mask.caption == "causal_mask(T=9): as expected"
    assert [(panel.title, panel.kind) for panel in mask.panels] == [("yours", "mask")]
    text = "54 of 99 numbers are −∞ in one of the two only"
    assert scores.caption == f"mask_scores(scores, mask): {text}"
    assert weights.caption.startswith("causal_weights(scores): the largest difference is 0.")
    assert [panel.kind for panel in weights.panels] == ["weights", "weights", "difference"]
    expected, yours, difference_panel = (panel.values for panel in weights.panels)
    assert torch.allclose(difference_panel, (yours - expected).double())
    for picture in (mask, scores, weights):
        assert (picture.rows, picture.columns) == ("query position", "key position")


@pytest.mark.parametrize(
    ("expected", "actual", "panel_kind", "text"),
    [
        ([1.0, -INF], [1.0, -1e30], "numbers", "as expected"),
        ([1.0, 0.0], [1.5, 0.0], "numbers", "the largest difference is 0.5"),
        ([1.0, 0.0], [INF, 0.0], "numbers", "the largest difference is inf"),
        ([1.0, 0.0], [NAN, 0.0], "numbers", "1 of 2 numbers are NaN"),
        ([True, False], [True, True], "mask", "1 of 2 differ"),
    ],
)
def test_the_caption_describes_the_difference(expected, actual, panel_kind, text):
    tables = torch.tensor([expected]), torch.tensor([actual])
    picture = compare_tables("f(x)", *tables, "", "", panel_kind)
    assert (picture.words, picture.differs) == (text, text != "as expected")


def test_numbers_hidden_in_only_one_of_two_tables_have_no_difference():
    lowest = torch.finfo(torch.float32).min
    differences = difference(
        torch.tensor([lowest, 1.0, 2.0, NAN, lowest]), torch.tensor([-INF, -INF, 0.5, 0.0, 1.0])
    )
    assert differences[[0, 2]].tolist() == [0.0, 1.5]
    assert differences.isnan().tolist() == [False, True, False, True, True]


@pytest.mark.parametrize(
    ("body", "note"),
    [
        ("raise NotImplementedError", "nothing is written on line 5 yet"),
        ("return 1 / 0", "your code raised ZeroDivisionError on line 5"),
        ("return torch.ones(T)", "yours has the shape (T)"),
        ("return None", "yours is no tensor"),
    ],
)
def test_only_the_expected_output_is_drawn_if_the_attempt_gives_none(draw, body, note):
    source = f"{WITHOUT_MASK}def causal_mask(T, device=None): {body}\n"
    picture = draw("causal_mask", source)[0]
    assert picture.caption == f"causal_mask(T=9): {note}"
    assert ([panel.title for panel in picture.panels], picture.differs) == (["expected"], False)


def test_the_caption_names_a_function_that_is_not_defined_yet(draw):
    attend = draw("attention_scores", reference_source("attention_scores").split("def attend(")[0])[
        -1
    ]
    assert attend.caption == "attend(q, k, v): not defined yet"
    merge = draw("reshape_dance", SPLIT.format(body=RIGHT_SPLIT).replace(MERGE, ""))[1]
    assert (merge.words, merge.panels[0].kind) == ("not defined yet", "addresses")


SCRIPT = "01_running_mean.py"
STUB = (make.TINY / "exercises" / "averages" / SCRIPT).read_bytes()
KEY = ("a", "averages")  # the student and the assignment


def failed_result(*outcomes: Outcome, student: str = "a", assignment: str = "averages"):
    """Return the result of an attempt whose checks have these outcomes."""
    checks = [make.check(f"c{i}", outcome=outcome) for i, outcome in enumerate(outcomes)]
    exercise = make.exercise("running_mean", *checks, max_score=4)
    return make.result(student, exercise, assignment=assignment)


@pytest.fixture
def draw_sources(tiny, box, tmp_path):
    """Return a function that draws the pictures of these sources, each of another student."""

    def draw(*sources: str | bytes) -> list[tuple[Picture, ...]]:
        folders = {}
        for student, source in zip("ab", sources, strict=False):
            folder = folders[student, "averages"] = tmp_path / student
            folder.mkdir()
            (folder / SCRIPT).write_bytes(source.encode() if isinstance(source, str) else source)
        results = [failed_result("failed", student=student) for student, _ in folders]
        return [drawn for _, drawn in draw_wrong(tiny, box, drawable(tiny, results, folders))]

    return draw


def test_wrong_numbers_are_drawn_beside_the_recorded_ones(draw_sources):
    ((picture,),) = draw_sources(make.CLASS["ben"])
    expected, yours, difference_panel = (panel.values for panel in picture.panels)
    assert picture.title == "running_mean(x)"
    torch.testing.assert_close(yours[0, -1], expected[0, -1])  # this attempt's last number is right
    torch.testing.assert_close(difference_panel, (yours - expected).double())


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
)
def test_an_attempt_without_wrong_numbers_is_not_drawn(draw_sources, source):
    assert draw_sources(source) == [()]


def test_equal_attempts_run_once_and_draw_at_most_a_few_pictures(draw_sources, monkeypatch):
    picture = Picture("f(x)", "", (), "", "", differs=True)
    runs = iter([[replace(picture, differs=False), *[picture] * (DRAWN + 1)]])
    monkeypatch.setattr(pictures_module, "pictures", lambda _: next(runs))
    assert draw_sources(*[make.CLASS["ben"]] * 2) == [(picture,) * DRAWN] * 2


@pytest.mark.parametrize(
    "content", [None, b"\xff\xfe not text \x00", STUB], ids=["missing", "unreadable", "the stub"]
)
def test_a_missing_unreadable_or_untouched_file_is_not_run(
    tiny, box, monkeypatch, tmp_path, content
):
    if content is not None:
        (tmp_path / SCRIPT).write_bytes(content)
    monkeypatch.setattr(type(box), "attempt", None)  # running an attempt would raise
    (target,) = drawable(tiny, [failed_result("error")], {KEY: tmp_path})
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
def test_only_an_attempt_that_failed_without_a_crash_is_drawn(tiny, outcomes, is_drawn):
    targets = drawable(tiny, [failed_result(*outcomes)], {KEY: Path("here")})
    assert bool(targets) is is_drawn


def test_an_attempt_without_a_folder_is_not_drawn(tiny):
    results = [failed_result("failed"), failed_result("failed", assignment="other")]
    folders = {("a", "other"): Path("here"), ("b", "averages"): Path("here")}
    assert drawable(tiny, results, folders) == []
