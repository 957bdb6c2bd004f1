"""Pictures: an answer beside the expected one, moved numbers by address, and wrong attempts."""

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
from tests.student.real import reference_source

INF, NAN = float("inf"), float("nan")
REST = """
import torch
def mask_scores(scores, mask): return scores.masked_fill(~mask, -torch.inf)
def causal_weights(scores): return mask_scores(scores, causal_mask(scores.shape[-1])).softmax(-1)
"""
MASK = REST + "def causal_mask(T, device=None): return torch.ones(T, T, dtype=torch.bool).tril()\n"
MERGE = "def merge_heads(y): return y.transpose(1, 2).flatten(2)\n"
SPLIT = "import torch\ndef split_heads(x, n_head): B, T, C = x.shape; return {body}\n" + MERGE
RIGHT = "x.unflatten(-1, (n_head, -1)).transpose(1, 2)"


@pytest.mark.parametrize(
    ("body", "words", "row", "heads"),
    [
        (RIGHT, "head 0: as expected", range(100, 106), [0] * 6),
        (
            "x.view(B, n_head, T, -1)",
            "head 0: 48 of 54 numbers are in the wrong place",
            range(6, 12),
            [1] * 6,
        ),
        (
            "x.view(B, T, -1, n_head).permute(0, 3, 1, 2)",
            "head 0: 45 of 54 numbers are in the wrong place",
            range(100, 126, 5),
            [0, 0, 1, 2, 3, 4],
        ),
        (
            f"(lambda y: torch.cat([y[:, :3], y[:, 3:].flip(1)], 1))({RIGHT})",
            "head 3: 54 of 54 numbers are in the wrong place",
            range(124, 130),
            [4] * 6,
        ),
        (
            f"torch.cat([{RIGHT}[:1], {RIGHT}[1:].flip(1)])",
            "sequence 1, head 0: 54 of 54 numbers are in the wrong place",
            range(10124, 10130),
            [4] * 6,
        ),
        (f"{RIGHT} * 2", "head 0: 54 of 54 numbers are not among x's", [-1] * 6, [-1] * 6),
        (f"{RIGHT} * 1.0000001", "head 0: as expected", range(100, 106), [0] * 6),
    ],
)
def test_a_reshape_is_drawn_by_address(draw, body, words, row, heads):
    split, merge = draw("reshape_dance", SPLIT.format(body=body))
    assert split.caption == f"split_heads(x, n_head=5), {words}"
    titles = [panel.title for panel in split.panels]
    assert titles == ["expected"] * split.differs + ["yours"]
    assert split.panels[-1].values[1].tolist() == list(row)
    assert split.panels[-1].heads[1].tolist() == heads
    assert (merge.words, merge.panels[0].title) == ("as expected", "yours, columns 0 to 11 of 30")


def test_a_wide_reshape_is_cut_where_it_goes_wrong(draw):
    source = SPLIT.format(body=RIGHT).replace("y.tr", "y[:, [0, 1, 2, 4, 3]].tr")
    merge = draw("reshape_dance", source)[1]
    assert (merge.words, merge.start) == ("108 of 270 numbers are in the wrong place", (0, 16))
    assert [(panel.title, panel.values[1].tolist()[:4]) for panel in merge.panels] == [
        ("expected, columns 16 to 27 of 30", [116, 117, 118, 119]),
        ("yours, columns 16 to 27 of 30", [116, 117, 124, 125]),
    ]


def test_a_right_answer_stands_alone_and_a_wrong_one_beside_the_expected_one(draw):
    mask, scores, weights = draw("causal_mask", MASK.replace("-torch.inf", "0.0"))
    assert mask.caption == "causal_mask(T=9): as expected"
    assert [(panel.title, panel.kind) for panel in mask.panels] == [("yours", "mask")]
    words = "54 of 99 numbers are −∞ in one of the two only"
    assert scores.caption == f"mask_scores(scores, mask): {words}"
    assert weights.caption.startswith("causal_weights(scores): the largest difference is 0.")
    assert [panel.kind for panel in weights.panels] == ["weights", "weights", "difference"]
    expected, yours, apart = (panel.values for panel in weights.panels)
    assert torch.allclose(apart, (yours - expected).double())
    for picture in (mask, scores, weights):
        assert (picture.rows, picture.columns) == ("query position", "key position")


@pytest.mark.parametrize(
    ("expected", "actual", "panel_kind", "words"),
    [
        ([1.0, -INF], [1.0, -1e30], "numbers", "as expected"),
        ([1.0, 0.0], [1.5, 0.0], "numbers", "the largest difference is 0.5"),
        ([1.0, 0.0], [INF, 0.0], "numbers", "the largest difference is inf"),
        ([1.0, 0.0], [NAN, 0.0], "numbers", "1 of 2 numbers are NaN"),
        ([True, False], [True, True], "mask", "1 of 2 differ"),
    ],
)
def test_a_difference_is_told_in_words(expected, actual, panel_kind, words):
    tables = torch.tensor([expected]), torch.tensor([actual])
    picture = compare_tables("f(x)", *tables, "", "", panel_kind)
    assert (picture.words, picture.differs) == (words, words != "as expected")


def test_a_number_that_only_one_of_the_two_hides_has_no_difference():
    low = torch.finfo(torch.float32).min
    apart = difference(
        torch.tensor([low, 1.0, 2.0, NAN, low]), torch.tensor([-INF, -INF, 0.5, 0.0, 1.0])
    )
    assert apart[[0, 2]].tolist() == [0.0, 1.5]
    assert apart.isnan().tolist() == [False, True, False, True, True]


@pytest.mark.parametrize(
    ("body", "note"),
    [
        ("raise NotImplementedError", "nothing is written on line 5 yet"),
        ("return 1 / 0", "your code raised ZeroDivisionError on line 5"),
        ("return torch.ones(T)", "yours has the shape (T)"),
        ("return None", "yours is no tensor"),
    ],
)
def test_without_an_answer_the_expected_one_is_drawn_with_the_reason(draw, body, note):
    source = f"{REST}def causal_mask(T, device=None): {body}\n"
    picture = draw("causal_mask", source)[0]
    assert picture.caption == f"causal_mask(T=9): {note}"
    assert ([panel.title for panel in picture.panels], picture.differs) == (["expected"], False)


def test_a_function_that_is_not_defined_yet_is_no_error(draw):
    attend = draw("attention_scores", reference_source("attention_scores").split("def attend(")[0])[
        -1
    ]
    assert attend.caption == "attend(q, k, v): not defined yet"
    merge = draw("reshape_dance", SPLIT.format(body=RIGHT).replace(MERGE, ""))[1]
    assert (merge.words, merge.panels[0].kind) == ("not defined yet", "addresses")


SCRIPT = "01_running_mean.py"
STUB = (make.TINY / "exercises" / "averages" / SCRIPT).read_bytes()
KEY = ("a", "averages")


def failed_result(*outcomes: Outcome, student: str = "a", assignment: str = "averages"):
    checks = [make.check(f"c{i}", outcome=outcome) for i, outcome in enumerate(outcomes)]
    exercise = make.exercise("running_mean", *checks, max_score=4)
    return make.result(student, exercise, assignment=assignment)


@pytest.fixture
def draw_sources(tiny, box, tmp_path):
    """Draw the pictures of these sources, one of each student."""

    def draw(*sources: str | bytes) -> list[tuple[Picture, ...]]:
        folders = {}
        for student, source in zip("ab", sources, strict=False):
            folder = folders[student, "averages"] = tmp_path / student
            folder.mkdir()
            (folder / SCRIPT).write_bytes(source.encode() if isinstance(source, str) else source)
        results = [failed_result("failed", student=student) for student, _ in folders]
        return [drawn for _, drawn in draw_wrong(tiny, box, drawable(tiny, results, folders))]

    return draw


def test_wrong_numbers_stand_beside_the_recorded_ones(draw_sources):
    ((picture,),) = draw_sources(make.CLASS["ben"])
    expected, yours, apart = (panel.values for panel in picture.panels)
    assert picture.title == "running_mean(x)"
    torch.testing.assert_close(yours[0, -1], expected[0, -1])  # the mean of all numbers is right
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
)
def test_an_attempt_without_wrong_numbers_is_not_drawn(draw_sources, source):
    assert draw_sources(source) == [()]


def test_two_equal_attempts_run_once_and_the_number_of_pictures_has_a_limit(
    draw_sources, monkeypatch
):
    picture = Picture("f(x)", "", (), "", "", differs=True)
    runs = iter([[replace(picture, differs=False), *[picture] * (DRAWN + 1)]])
    monkeypatch.setattr(pictures_module, "pictures", lambda _: next(runs))
    assert draw_sources(*[make.CLASS["ben"]] * 2) == [(picture,) * DRAWN] * 2


@pytest.mark.parametrize(
    "content", [None, b"\xff\xfe not text \x00", STUB], ids=["missing", "unreadable", "the stub"]
)
def test_a_file_without_an_attempt_is_not_run(tiny, box, monkeypatch, tmp_path, content):
    if content is not None:
        (tmp_path / SCRIPT).write_bytes(content)
    monkeypatch.setattr(type(box), "attempt", None)
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
def test_only_an_attempt_that_failed_and_ended_well_is_run_again(tiny, outcomes, is_drawn):
    targets = drawable(tiny, [failed_result(*outcomes)], {KEY: Path("here")})
    assert bool(targets) is is_drawn


def test_a_student_or_an_assignment_without_a_folder_is_not_drawn(tiny):
    results = [failed_result("failed"), failed_result("failed", assignment="other")]
    folders = {("a", "other"): Path("here"), ("b", "averages"): Path("here")}
    assert drawable(tiny, results, folders) == []
