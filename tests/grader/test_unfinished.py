"""At the real course: a mistake has its name while the functions after it are unfinished, in whatever way."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from manyheads.authoring.stub import STUB
from manyheads.box.level import Box
from manyheads.course import Course, load_course
from manyheads.diagnosis.recording_file import read
from manyheads.judge.grade_submission import Judge
from manyheads.result import ExerciseResult
from manyheads.student.run_attempt import check_source
from manyheads.submission import AttemptSource
from tests.grader.changes import NO_SEARCH, changed

EXERCISES = {e.id: e for e in load_course(Path(__file__).parents[2]).exercises}
UNFINISHED = {
    "not begun": "raise NotImplementedError",
    "nothing but pass": "pass",
    "half a line": "return not_there_yet",
    "not there at all": "",
}
MISTAKES = [
    pytest.param("reshape_dance", "wrong_view",
        {"x = x.view(B, T, n_head, C // n_head)": "x = x.view(B, n_head, T, C // n_head)",
        "return x.transpose(1, 2)  # (B, nh": "return x  # (B, nh"}, "merge_heads",
        id="the wrong view, without a merge"),
    pytest.param("attention_scores", "scale_missing", {" / math.sqrt(q.shape[-1])": ""}, "attention_weights",
        id="scores that are not scaled, without weights"),
    pytest.param("causal_mask", "mask_excludes_self", {"device=device).tril()": "device=device).tril(-1)"},
        "mask_scores", id="a mask that hides the token itself, which nobody uses"),
    pytest.param("fused_qkv", "scale_sqrt_c", {"math.sqrt(self.head_dim)": "math.sqrt(C)"}, "gpt2_attention",
        id="a scale of √C, without GPT-2's sizes"),
    pytest.param("sdpa_equivalence", "mask_missing", {"dropout_p=dropout_p, is_causal=True": "dropout_p=dropout_p"},
        "max_path_difference", id="a fused call without a mask, without the comparison"),
]  # fmt: skip


def unfinished(text: str, first: str, body: str) -> str:
    """The text with this body in all functions from `first` on; without them where it is empty."""
    tree = ast.parse(text)
    names = [node.name if isinstance(node, ast.FunctionDef | ast.ClassDef) else "" for node in tree.body]
    start = names.index(first)
    kept: list[ast.stmt] = tree.body[:start]
    for node in tree.body[start:]:
        if isinstance(node, ast.FunctionDef) and body:
            node.body = ast.parse(body).body
            kept.append(node)
    return ast.unparse(ast.Module(kept, []))


def names_of(result: ExerciseResult) -> list[set[str]]:
    """Each name with what may stand in its place, but for the name of what is not written."""
    return [{d.id, *d.alternatives} for d in result.diagnosis if d.id != "stub_untouched"]


@pytest.mark.parametrize("way", UNFINISHED)
@pytest.mark.parametrize(("exercise", "id_", "changes", "first"), MISTAKES)
def test_it_is_the_only_name_when_graded_and_at_home(judge, box, course, exercise, id_, changes, first, way):
    wanted = EXERCISES[exercise]
    source = AttemptSource("attempt.py", unfinished(changed(wanted, changes), first, UNFINISHED[way]))
    limits = course.limits.for_worker()
    graded = names_of(judge.grade_attempt("somebody", wanted, source))
    at_home = names_of(check_source(read(wanted.fingerprints), source, box, limits, NO_SEARCH))
    for told in (graded, at_home):
        assert id_ in told[0]
        assert [name for name in told[1:] if name != {"interface"}] == []


def test_a_name_is_not_made_from_two_answers_of_a_function_that_uses_what_is_wrong(course: Course, box: Box) -> None:
    """Its few values fit several mutants; what it calls is wrong in a way that no mutant has."""
    exercise = EXERCISES["fused_qkv"]
    text = changed(exercise, {"weights = self.attn_dropout(scores.softmax(dim=-1))": "weights = torch.tanh(scores)"})
    limits = course.limits.for_worker()
    result = check_source(read(exercise.fingerprints), AttemptSource("attempt.py", text), box, limits, NO_SEARCH)
    assert result.score < result.max_score
    assert names_of(result) == []


def test_two_mistakes_in_two_functions_have_a_name_each(judge: Judge, box: Box, course: Course) -> None:
    exercise = EXERCISES["causal_mask"]
    text = changed(
        exercise,
        {
            "device=device).tril()": "device=device).tril(-1)",
            "masked_fill(~mask": "masked_fill(mask",
            "torch.softmax(mask_scores(scores, mask), dim=-1)": "scores.cumsum(-1)",  # which nobody has listed
        },
    )
    source = AttemptSource("attempt.py", text)
    limits = course.limits.for_worker()
    for result in (
        judge.grade_attempt("somebody", exercise, source),
        check_source(read(exercise.fingerprints), source, box, limits, NO_SEARCH),
    ):
        ids = [d.id for d in result.diagnosis]
        assert ids == ["mask_excludes_self", "mask_reversed"]


def test_no_name_is_said_twice(course: Course, box: Box) -> None:
    """Where two mutants of one misconception explain two functions each, it is one mistake to whoever reads it."""
    exercise = EXERCISES["causal_mask"]
    text = changed(
        exercise, {"device=device).tril()": "device=device).tril(-1)", "masked_fill(~mask": "masked_fill(mask"}
    )
    limits = course.limits.for_worker()
    result = check_source(read(exercise.fingerprints), AttemptSource("attempt.py", text), box, limits, NO_SEARCH)
    ids = [d.id for d in result.diagnosis]
    assert len(ids) == len(set(ids)) > 1


def test_of_two_that_explain_what_is_written_the_smaller_mistake_is_named_first(judge, box, course):
    """The wrong view in, with nothing written to lead out: that it leads straight back, too, nobody can know."""
    exercise = EXERCISES["reshape_dance"]
    split, merge = exercise.script.read_text(encoding="utf-8").split(STUB[1])[:2]
    rest = exercise.script.read_text(encoding="utf-8")[len(split) + len(STUB[1]) :]
    assert "merge_heads" in merge
    view = "if x.shape[-1] % n_head:\n        raise ValueError(f'{x.shape[-1]} into {n_head}')\n    B, T, C = x.shape\n"
    source = AttemptSource("attempt.py", f"{split}{view}    return x.view(B, n_head, T, C // n_head){rest}")
    limits = course.limits.for_worker()
    for result in (
        judge.grade_attempt("somebody", exercise, source),
        check_source(read(exercise.fingerprints), source, box, limits, NO_SEARCH),
    ):
        assert result.diagnosis[0].id == "wrong_view"


@pytest.mark.parametrize("name", ["sdpa_each_head.py", "vmap_sdpa.py"])
def test_what_is_right_stays_so_while_what_compares_it_is_not_written(judge: Judge, name: str) -> None:
    exercise = EXERCISES["sdpa_equivalence"]
    right = next(path for path in exercise.right_attempts() if path.name == name)
    text = unfinished(right.read_text(encoding="utf-8"), "max_path_difference", UNFINISHED["not begun"])
    result = judge.grade_attempt("somebody", exercise, AttemptSource("attempt.py", text))
    assert [each.id for each in result.diagnosis] == ["stub_untouched"]
    assert [each.state for each in result.functions] == ["so_far", "unwritten"]
