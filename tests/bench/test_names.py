"""Names that both sides give are written down, and two such files are compared."""

import json
from pathlib import Path

import pytest

from bench.names import Attempt, compare, figures, text_of, unfinished, written
from manyheads.authoring.stub import STUB
from manyheads.course import load_course
from manyheads.diagnosis import load_bank

COURSE = load_course(Path(__file__).parents[2])
RESHAPE = next(e for e in COURSE.exercises if e.id == "reshape_dance")


def said(graded: list[str], home: list[str]) -> dict[str, object]:
    return {"graded": {"names": graded}, "home": {"names": home}}


def test_what_was_won_lost_and_reordered_is_counted():
    old = {"a": said(["x in f"], ["x in f"]), "b": said(["x in f", "y in g"], []), "c": said([], [])}
    new = {"a": said([], ["x in f"]), "b": said(["y in g", "x in f"], []), "c": said([], ["z|w in f"])}
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


def test_of_each_kind_it_is_counted_how_many_have_their_names():
    found = {
        "a: mutant 0 x": said(["x|y in f"], ["y|x in f"]),
        "a: mutant 1 y": said(["x in f", "y in f"], []),
        "a: pair 0 x and y": said(["y in f", "x in g"], ["x in g"]),
        "a: right one": said([], []),
        "a: edit 0 one a → b": said(["x in f"], []),
    }
    assert [row for row in figures(found) if "0 of 0" not in row][2:] == [
        "| mutants, named first | 1 of 2 | 1 of 2 | 0 of 2 |",
        "| pairs of mutants, both named | 1 of 1 | 0 of 1 | 0 of 1 |",
        "| right attempts, unnamed | 1 of 1 | 1 of 1 | 1 of 1 |",
        "| right attempts with a small edit, named | 1 of 1 | 0 of 1 | 0 of 1 |",
    ]


def test_an_attempt_that_only_one_file_has_is_told():
    assert list(compare({"a": said([], [])}, {}))[-1] == "only in one file: a"


def test_an_unfinished_attempt_has_its_last_functions_as_the_stub_has_them():
    whole = Attempt("right", "reference", RESHAPE.solution.read_text("utf-8"))
    (cut,) = unfinished(RESHAPE, whole)
    assert cut.label == "reference before merge_heads"
    assert cut.text.count("def split_heads(") == cut.text.count("def merge_heads(") == 1
    assert cut.text.rstrip().endswith(STUB[1])
    made = Attempt("mutant", "0", text_of(RESHAPE, load_bank(RESHAPE).mutants[0]))
    (cut,) = unfinished(RESHAPE, made)
    assert cut.text.index("globals().update(make(") < cut.text.rindex("def merge_heads(")


@pytest.mark.journey
def test_both_sides_are_written_of_every_kind_of_attempt():
    found = [json.loads(line) for line in written("reshape_dance", 60)]
    kinds = {each["attempt"].removeprefix("reshape_dance: ").split(" ")[0] for each in found}
    assert kinds == {"mutant", "pair", "right", "wrong", "edit", "unfinished"}
    first = next(each for each in found if each["attempt"].startswith("reshape_dance: mutant"))
    (name,) = first["graded"]["names"]
    assert name in first["home"]["names"]


@pytest.mark.journey
def test_kept_replies_are_judged_again_without_asking(tmp_path, capfd):
    live = written("reshape_dance", 200)
    first, again = (written("reshape_dance", 200, tmp_path) for _ in range(2))
    without_lines = [line for line in map(json.loads, live) if line["attempt"].split(" ")[1] in ("mutant", "pair")]
    assert [
        line for line in map(json.loads, first) if line["attempt"].split(" ")[1] in ("mutant", "pair")
    ] == without_lines
    assert again == first
    asked = [line.split(" ")[1] for line in capfd.readouterr().err.splitlines() if "asked anew" in line]
    assert asked[0] != "0"
    assert asked[1] == "0"
