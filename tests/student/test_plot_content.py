"""What is drawn: expected beside yours beside the difference, head by head."""

import pytest
import torch

from manyheads.student.follow import TABLES, TIMES
from manyheads.student.plot_content import Band, all_bands, bands, difference, summary
from tests.student.real import FollowSource, solution

ZEROS = """
import torch
def causal_mask(T, device=None): return torch.ones(T, T, dtype=torch.bool).tril()
def mask_scores(scores, mask): return scores.masked_fill(~mask, 0.0)
def causal_weights(scores): return mask_scores(scores, causal_mask(scores.shape[-1])).softmax(-1)
"""


@pytest.fixture
def drawn(follow_source: FollowSource) -> list[Band]:
    followed = follow_source("causal_mask", ZEROS, by_head=True, crop=TABLES, times=TIMES)
    return all_bands(followed)


def test_a_band_for_each_function_and_each_head(drawn: list[Band]) -> None:
    heads = [f"causal_weights(scores), head {h}" for h in range(3)]
    assert [band.title for band in drawn] == ["causal_mask(T=9)", "mask_scores(scores, mask)", *heads]
    assert [[panel.title for panel in band.panels] for band in drawn] == [["expected", "yours", "yours − expected"]] * 5


def test_axes_and_kinds_are_those_of_the_lesson(drawn: list[Band]) -> None:
    assert {(band.rows, band.columns) for band in drawn} == {("query position", "key position")}
    assert [band.panels[0].kind for band in drawn] == ["mask", "numbers", *["weights"] * 3]


def test_the_difference_is_yours_less_what_is_expected(drawn: list[Band]) -> None:
    expected, yours, apart = (panel.values for panel in drawn[2].panels)
    assert torch.allclose(apart, (yours - expected).double())
    assert apart[0, 0] < -0.1  # the first query should see itself alone


def test_the_picture_can_be_told_in_words(drawn: list[Band]) -> None:
    first, second, third, *_ = summary(drawn)
    assert first == "causal_mask(T=9): as expected"
    assert second == "mask_scores(scores, mask): 54 of 99 numbers are hidden in one of the two only"
    assert third.startswith("causal_weights(scores), head 0: the largest difference is 0.")


def test_hidden_in_both_is_no_difference_and_in_one_only_is_none_that_can_be_drawn() -> None:
    low = torch.finfo(torch.float32).min
    apart = difference(
        torch.tensor([low, 1.0, 2.0, float("nan"), low]), torch.tensor([float("-inf"), float("-inf"), 0.5, 0.0, 1.0])
    )
    assert apart[[0, 2]].tolist() == [0.0, 1.5]
    assert apart.isnan().tolist() == [False, True, False, True, True]


@pytest.mark.parametrize(("body", "note"), [
    ("raise NotImplementedError", "nothing is written on line 1 yet"),
    ("return 1 / 0", "your code raised ZeroDivisionError on line 1"),
    ("return torch.ones(T)", "yours has the shape (T)"),
    ("return None", "yours is no tensor"),
])  # fmt: skip
def test_where_there_is_nothing_to_compare_it_says_why(follow_source: FollowSource, body: str, note: str) -> None:
    source = f"def causal_mask(T, device=None): {body}\nimport torch\n" + ZEROS.split("bool).tril()\n")[1]
    followed = follow_source("causal_mask", source, by_head=True)
    band = all_bands(followed[:1])[0]
    assert [panel.note for panel in band.panels] == ["", note, ""]
    assert summary([band]) == [f"causal_mask(T=9): {note}"]


def test_what_is_not_there_yet_is_told_once_and_as_no_error(follow_source: FollowSource) -> None:
    source = solution("attention_scores").split("def attend(")[0]
    told = summary(all_bands(follow_source("attention_scores", source, by_head=True)))
    assert [line for line in told if line.startswith("attend(")] == ["attend(q, k, v), head 0: not defined yet"]


def test_many_functions_show_fewer_heads_each(follow_source: FollowSource) -> None:
    followed = follow_source("attention_scores", by_head=True)
    titles = [band.title for band in all_bands(followed)]
    assert [title for title in titles if title.startswith("attend(")] == [
        "attend(q, k, v), head 0",
        "attend(q, k, v), head 1",
    ]


def test_the_weights_of_the_students_own_module_are_shown_head_by_head(follow_source: FollowSource) -> None:
    followed = follow_source("self_attention", by_head=True, crop=TABLES, times=TIMES)
    alone = [band for example, traced in followed for band in bands(example, traced)][1:]
    assert [band.title.split(" in ")[0] for band in alone] == ["your weights"]
    assert summary(alone)[0].endswith(": 1 head")
    assert [panel.kind for panel in alone[0].panels] == ["weights"]
    assert not alone[0].differs
