"""The sentence by which an editor tells what is wrong."""

from __future__ import annotations

import pytest

from manyheads.evidence import FunctionEvidence


@pytest.mark.parametrize(
    ("says", "seen", "sentence"),
    [
        ("not right yet", "3 values differ", "split: not right yet. 3 values differ."),
        (
            "You did not scale.",
            "what is that factor made of?",
            "split: You did not scale. What is that factor made of?",
        ),
        ("not right yet", "nobody sees it!", "split: not right yet. Nobody sees it!"),
    ],
)
def test_it_has_one_mark_at_the_end_of_each_part(says: str, seen: str, sentence: str) -> None:
    assert FunctionEvidence(function="split", state="wrong", says=says, evidence=seen).sentence == sentence
