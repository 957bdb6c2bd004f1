"""What bench measures and writes down is what it says: names of both sides, costs, and the README's
picture.
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
    """Return the record of an attempt with these names on each side, separated by commas."""
    sides = {"graded": graded, "home": home}
    return fields | {
        side: {"names": names.split(", ") if names else []} for side, names in sides.items()
    }


def test_names_that_were_won_lost_and_reordered_are_counted():
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
def test_both_sides_are_written_of_every_kind_of_attempt():
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
    return {(code_of(one), code_of(two)) for one, two in pairs_of(bank)}


def test_the_chosen_mutants_stay_the_same_when_the_bank_grows() -> None:
    bank = load_bank(RESHAPE)
    codes = [code_of(mutant) for mutant in bank.mutants[5:]]
    smaller = replace(bank, mutants=bank.mutants[5:])
    expected = {pair for pair in codes_of_pairs(bank) if {*pair} <= {*codes}}
    assert expected
    assert expected <= codes_of_pairs(smaller)
    assert [code_of(mutant) for mutant in smaller.mutants] == codes


def test_names_are_compared_with_the_misconceptions_of_the_mutant() -> None:
    attempts = {
        "named": record("y|x in f", "x in f", kind="mutant", due=["x"]),
        "not named at home": record("x in f", "", kind="mutant", due=["x"]),
        "right": record("", "", kind="right", due=[]),
    }
    rows = list(figures(attempts))
    assert "| mutants, named first | 2 of 2 | 1 of 2 | 0 of 2 |" in rows
    assert "| right attempts, unnamed | 1 of 1 | 1 of 1 | 1 of 1 |" in rows


@pytest.mark.journey
def test_every_mutant_is_handed_in_with_all_that_its_bank_shares_with_others():
    for exercise in load_course(REPOSITORY).exercises:
        for mutant in load_bank(exercise).mutants[::25]:
            names: dict[str, object] = {}
            exec(text_of(exercise, mutant), names)
            assert mutant.edited_text or names.keys() >= mutant.namespace.keys()


@pytest.mark.recorded
def test_the_picture_is_what_the_commands_print_today() -> None:
    # a busy machine may not find the wrong line in time
    drawn = PICTURE.read_text(encoding="utf-8")
    assert drawn == picture() or drawn == picture(), "Next: python -m bench.terminal"


def test_it_is_small_and_loads_nothing() -> None:
    text = PICTURE.read_text(encoding="utf-8")
    assert PICTURE.stat().st_size < 80_000
    assert set(re.findall(r"https?://[^\s\"']+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<script|<image|@import|@font-face|href=", text)


def test_the_readme_shows_it_and_says_it_in_words() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    (words,) = re.findall(r"!\[([^\]]+)\]\(docs/wrong-view\.svg\)", readme)
    assert "You viewed straight to (B, n_head, T, head_dim)" in words
