"""One line that mends all stands beside one name; attempts that answer alike share a digest."""

from manyheads.box.connection import Box
from manyheads.course import Course
from manyheads.judge.edit_search import Bounds
from manyheads.judge.grade_submission import Judge, Settings
from tests.diagnosis.both_sides import Sides, named_misconceptions

BY_COUNT = Bounds(seconds=250.0)  # a slow machine finds as much as a fast one


def test_a_line_that_mends_all_stands_beside_one_name(
    sides: Sides, real_course: Course, box: Box
) -> None:
    """Queries meet values in place of keys: that is one mistake, and one edit makes all right."""
    source = sides.source("cross_attention", {"q @ k.transpose": "q @ v.transpose"})
    settings = Settings(b"one edit", exercises=("cross_attention",), bounds=BY_COUNT)
    judge = Judge(real_course, box, settings)
    graded = judge.grade_attempt("somebody", sides.exercise("cross_attention"), source)
    for result in (graded, sides.home("cross_attention", source, BY_COUNT)):
        assert (named_misconceptions(result), len(result.lines)) == (["scores_wrong_source"], 1)


def test_a_line_that_mends_what_is_visible_alone_takes_no_name_away(sides: Sides) -> None:
    """No visible check asks for the dropout of the weights."""
    weights = {"self.attn_dropout(scores.softmax(dim=-1))": "scores.softmax(dim=-1)"}
    source = sides.source("fused_qkv", {**weights, "math.sqrt(self.head_dim)": "math.sqrt(C)"})
    home = sides.home("fused_qkv", source, BY_COUNT)
    assert named_misconceptions(home) == [
        "scale_sqrt_c",
        "dropout_before_softmax|dropout_on_output_only",
    ]
    assert home.lines == ()


def test_attempts_that_answer_alike_share_a_digest_however_they_are_written(sides: Sides) -> None:
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
