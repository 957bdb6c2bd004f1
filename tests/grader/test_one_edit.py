"""One line that mends all stands beside one name; attempts that answer alike share a digest."""

from manyheads.box.connection import Box
from manyheads.course import Course
from manyheads.judge.edit_search import Bounds
from manyheads.judge.grade_submission import Judge, Settings
from tests.diagnosis.both_sides import Sides, named_misconceptions

BOUNDED_BY_COUNT = Bounds(seconds=250.0)  # a slow machine finds as much as a fast one


def test_a_line_is_shown_beside_a_single_misconception_if_its_edit_mends_all(
    sides: Sides, real_course: Course, box: Box
) -> None:
    """Queries meet values in place of keys: one mistake, and one edit makes everything right."""
    source = sides.source("cross_attention", {"q @ k.transpose": "q @ v.transpose"})
    settings = Settings(b"one edit", exercises=("cross_attention",), bounds=BOUNDED_BY_COUNT)
    judge = Judge(real_course, box, settings)
    graded = judge.grade_attempt("somebody", sides.exercise("cross_attention"), source)
    for result in (graded, sides.home("cross_attention", source, BOUNDED_BY_COUNT)):
        assert (named_misconceptions(result), len(result.lines)) == (["scores_wrong_source"], 1)


def test_an_edit_that_mends_only_visible_checks_removes_no_misconception(sides: Sides) -> None:
    """No visible check asks for the dropout of the weights."""
    weights = {"self.attn_dropout(scores.softmax(dim=-1))": "scores.softmax(dim=-1)"}
    source = sides.source("fused_qkv", {**weights, "math.sqrt(self.head_dim)": "math.sqrt(C)"})
    home = sides.home("fused_qkv", source, BOUNDED_BY_COUNT)
    assert named_misconceptions(home) == [
        "scale_sqrt_c",
        "dropout_before_softmax|dropout_on_output_only",
    ]
    assert home.lines == ()


def test_attempts_with_equal_answers_share_a_digest(sides: Sides) -> None:
    scores = "q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)"
    flipped = {"self.W_value(context)": "self.W_value(context.flip(1))"}
    by_einsum = {**flipped, scores: "torch.einsum('bhqd,bhkd->bhqk', q * self.head_dim**-0.5, k)"}
    right, values, values_by_einsum, keys = (
        sides.grade_attempt("cross_attention", changes).answers
        for changes in (
            {},
            flipped,
            by_einsum,
            {"self.W_key(context)": "self.W_key(context.flip(1))"},
        )
    )
    assert right == ""
    assert values == values_by_einsum != ""
    assert keys not in ("", values)
