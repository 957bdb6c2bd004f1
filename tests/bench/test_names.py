"""The benchmark of named misconceptions, and the picture of the terminal in the README.

An attempt is graded by `course grade` ("graded") and checked by `course check` ("home").
"""

import json
import re
from dataclasses import replace

import pytest

from bench.names import attempt_records, code_of, compare, figures, pairs_of, text_of
from bench.terminal import PICTURE, picture
from manyheads.course import load_course
from manyheads.diagnosis import Bank, load_bank
from tests.make import REPOSITORY

COURSE = load_course(REPOSITORY)
RESHAPE = next(e for e in COURSE.exercises if e.id == "reshape_dance")


def record(graded: str, home: str, **fields: object) -> dict[str, object]:
    """Return the record of an attempt.

    graded, home: the misconceptions that each command names, separated by ", ".
    """
    sides = {"graded": graded, "home": home}
    return fields | {
        side: {"names": names.split(", ") if names else []} for side, names in sides.items()
    }


def test_comparison_counts_names_that_are_won_lost_or_reordered():
    old = {"a": record("x in f", "x in f"), "b": record("x in f, y in g", ""), "c": record("", "")}
    new = {
        "a": record("", "x in f"),
        "b": record("y in g, x in f", ""),
        "c": record("", "z|w in f"),
    }
    assert list(compare({"a": record("", "")}, {}))[-1] == "only in one file: a"
    assert list(compare(old, new)) == [
        "a, graded: names lost: x in f",
        "b, graded: names reordered: x in f > y in g, now y in g > x in f",
        "c, home: names won: z|w in f",
        "1 graded: names lost",
        "1 graded: names reordered",
        "1 home: names won",
        "old: 3 attempts; the two sides have other names, or another order, on 1, "
        "and on 1 of these the student's side has none",
        "new: 3 attempts; the two sides have other names, or another order, on 3, "
        "and on 1 of these the student's side has none",
    ]


@pytest.mark.journey
def test_both_results_are_recorded_for_every_kind_of_attempt():
    records = [json.loads(line) for line in attempt_records("reshape_dance", 60)]
    categories = {
        record["attempt"].removeprefix("reshape_dance: ").split(" ")[0] for record in records
    }
    assert categories == {"mutant", "pair", "right", "wrong", "edit", "unfinished"}
    mutant = next(record for record in records if record["kind"] == "mutant")
    (name,) = mutant["graded"]["names"]
    assert name in mutant["home"]["names"]
    assert name.startswith(mutant["due"][0])


def codes_of_pairs(bank: Bank) -> set[tuple[str, str]]:
    """Return the code of both mutants, for each pair that is chosen from the bank."""
    return {(code_of(first), code_of(second)) for first, second in pairs_of(bank)}


def test_the_chosen_pairs_stay_the_same_when_the_bank_grows() -> None:
    bank = load_bank(RESHAPE)
    codes = [code_of(mutant) for mutant in bank.mutants[5:]]
    smaller = replace(bank, mutants=bank.mutants[5:])
    expected = {pair for pair in codes_of_pairs(bank) if {*pair} <= {*codes}}
    assert expected
    assert expected <= codes_of_pairs(smaller)
    assert [code_of(mutant) for mutant in smaller.mutants] == codes


def test_the_table_counts_names_that_match_the_misconception_of_the_mutant() -> None:
    attempts = {
        "named": record("y|x in f", "x in f", kind="mutant", due=["x"]),
        "not named at home": record("x in f", "", kind="mutant", due=["x"]),
        "right": record("", "", kind="right", due=[]),
    }
    rows = list(figures(attempts))
    assert "| mutants, named first | 2 of 2 | 1 of 2 | 0 of 2 |" in rows
    assert "| right attempts, unnamed | 1 of 1 | 1 of 1 | 1 of 1 |" in rows


@pytest.mark.journey
def test_the_text_of_a_mutant_defines_all_names_of_its_namespace():
    for exercise in load_course(REPOSITORY).exercises:
        for mutant in load_bank(exercise).mutants[::25]:
            namespace: dict[str, object] = {}
            exec(text_of(exercise, mutant), namespace)
            if not mutant.edited_text:
                assert namespace.keys() >= mutant.namespace.keys()


@pytest.mark.recorded
def test_the_picture_of_the_terminal_is_up_to_date() -> None:
    drawn = PICTURE.read_text(encoding="utf-8")
    if drawn != picture():  # a busy machine may not find the wrong line in time: try again
        assert drawn == picture(), "Next: python -m bench.terminal"


def test_the_picture_is_small_and_loads_no_other_file() -> None:
    text = PICTURE.read_text(encoding="utf-8")
    assert PICTURE.stat().st_size < 80_000
    assert set(re.findall(r"https?://[^\s\"']+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<script|<image|@import|@font-face|href=", text)


def test_the_readme_shows_the_picture_with_an_alternative_text() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    (alternative_text,) = re.findall(r"!\[([^\]]+)\]\(docs/wrong-view\.svg\)", readme)
    assert "You viewed straight to (B, n_head, T, head_dim)" in alternative_text
