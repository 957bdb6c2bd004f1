"""Which step of a hint comes next."""

from pathlib import Path

import pytest

from manyheads.diagnosis.recording import Recording, Words
from manyheads.result import Diagnosed, ExerciseResult, FunctionResult, Outcome
from manyheads.student.hints import Hint, next_hint, next_step
from tests import make


@pytest.fixture
def note(tmp_path: Path) -> Path:
    return tmp_path / ".course" / "hints.json"


def test_the_last_step_stays(note: Path) -> None:
    assert [next_step(note, "one", "sum", 2) for _ in range(4)] == [1, 2, 3, 3]


def test_another_mistake_and_another_exercise_start_with_their_own_first_step(note: Path) -> None:
    assert [next_step(note, *about, 3) for about in (("one", "sum"), ("one", "mean"), ("two", "sum"))] == [1, 1, 1]
    assert next_step(note, "two", "sum", 3) == 2


@pytest.mark.parametrize("damage", ["", "[7", "[]", '{"one": 3}', '{"one": {"about": "sum"}}'])
def test_a_damaged_note_starts_over(note: Path, damage: str) -> None:
    next_step(note, "one", "sum", 3)
    note.write_text(damage, encoding="utf-8")
    assert [next_step(note, "one", "sum", 3) for _ in range(2)] == [1, 2]


WORDS = {
    name: Words(title=f"{name}.", explanation="", hints=(f"{name}?", "2", "3")) for name in ("reversed", "missing")
}


def two_functions(*, split: Outcome = "failed") -> ExerciseResult:
    """Both are wrong, each with a mistake of its own; that of the second stands first in the diagnosis."""
    named = {"merge": "missing", "split": "reversed"}
    checks = tuple(
        make.check(name, outcome=end, evidence=f"{name} {end}.", function=name)
        for name, end in (("split", split), ("merge", "failed"))
    )
    functions = tuple(FunctionResult(name=check.id, state="wrong", check=check.title) for check in checks)
    diagnosis = tuple(Diagnosed(id=id_, title=f"{id_}.", hint="", function=name) for name, id_ in named.items())
    return make.exercise("dance", *checks, functions=functions, diagnosis=diagnosis)


def hint_on(result: ExerciseResult, note: Path) -> Hint:
    recording = Recording("dance", "", checks=(), calls=(), expected=(), replies=(), mutants=(), words=WORDS)
    return next_hint(recording, result, "Begin.", note)


def test_it_is_of_the_function_that_check_shows_first(note: Path) -> None:
    assert hint_on(two_functions(), note) == Hint("split: reversed.", "Hint 1 of 3: reversed?", False)


def test_of_a_function_that_runs_on_for_ever_it_is_about_the_loop(note: Path) -> None:
    hint = hint_on(two_functions(split="timeout"), note)
    assert (hint.title, hint.sentence[:36]) == ("split timeout.", "Hint 1 of 2: Which loop has no end? ")


def test_of_what_is_begun_it_is_about_what_the_stub_has_left(note: Path) -> None:
    begun = FunctionResult(name="merge", state="unwritten", evidence="its forward is not written yet")
    functions = (FunctionResult(name="split", state="unwritten"), begun)
    checks = tuple(each.model_copy(update={"function": ""}) for each in two_functions().checks)
    result = make.exercise("dance", *checks, functions=functions)
    assert hint_on(result, note).title == "merge: its forward is not written yet"
