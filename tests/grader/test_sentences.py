"""At the real course: what a student reads is true, says which, and speaks of nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from manyheads.box.level import Box
from manyheads.course import Course, load_course
from manyheads.diagnosis.recording_file import read
from manyheads.report.words import attempt_words
from manyheads.student.run_attempt import check_source
from manyheads.submission import AttemptSource
from tests.grader.changes import NO_SEARCH, Changes, changed

EXERCISES = {e.id: e for e in load_course(Path(__file__).parents[2]).exercises}
STUB = "raise NotImplementedError"
SCORES = "return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])"


def said(course: Course, box: Box, exercise: str, changes: Changes) -> str:
    """What `course check` says of a solution with these changes, a line each."""
    wanted = EXERCISES[exercise]
    source = AttemptSource("attempt.py", changed(wanted, changes))
    result = check_source(
        read(wanted.fingerprints), source, box, course.limits.for_worker(), NO_SEARCH, exercise=wanted
    )
    functions = attempt_words(result).functions
    return "\n".join(text for f in functions for text in (f"{f.mark} {f.head}", *(each for _, each, _ in f.told)))


@pytest.mark.parametrize(("exercise", "changes", "says", "never"), [
    pytest.param("attention_scores", {SCORES: SCORES.replace("return", "scores =")},
        "✗ attention_scores: It returns None, as where a return is missing.", "spelling", id="a return is missing"),
    pytest.param("attention_scores", {"v: torch.Tensor)": "values: torch.Tensor)", ") @ v": ") @ values"},
        "✗ attend: Its arguments are not the ones that the exercise names.", "A name, an argument", id="another argument"),
    pytest.param("causal_mask", {"(scores: torch.Tensor": "(att: torch.Tensor", "return scores.masked": "return att.masked",
        "    mask = causal_mask(": "    scores = att\n    mask = causal_mask("},
        "✗ causal_weights: Its arguments are not the ones", "not right yet", id="another argument in two functions"),
    pytest.param("attention_scores", {SCORES: "return q @ k.transpose(-2, -1)", "return torch.softmax(scores, dim=-1)": STUB,
        "return attention_weights(attention_scores(q, k)) @ v": STUB},
        "✗ attention_scores: You did not scale the scores.", "Or:", id="an alternative in functions that are not written"),
    pytest.param("reshape_dance", {"    B, nh, T, hd = y.shape\n    return y.transpose(1, 2)": f"    {STUB}  #",
        "return x.transpose(1, 2)": "return x.reshape(B, n_head, T, C // n_head)"},
        "✗ split_heads: You viewed straight to", "back again", id="an alternative of a merge that is not written"),
    pytest.param("sdpa_equivalence", {"q @ k.transpose(-2, -1)": "q @ k"},
        "· max_path_difference: waits for CausalSelfAttention", "✗ max_path", id="a measure of a class that raises"),
])  # fmt: skip
def test_it_says(course: Course, box: Box, exercise: str, changes: Changes, says: str, never: str) -> None:
    text = said(course, box, exercise, changes)
    assert says in text
    assert not re.search(never, text)
