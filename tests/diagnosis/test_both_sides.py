"""A student's machine and the grading say the same of an attempt, but for what a hidden check shows by itself."""

from collections.abc import Iterator
from itertools import chain, islice

import pytest

from bench.names import Attempt, pairs_of, text_of, text_of_pair, unfinished
from manyheads.course import Exercise, load_course
from manyheads.course.model import with_neighbours
from manyheads.diagnosis import load_bank
from tests.diagnosis.both_sides import Sides, apart, names
from tests.make import REPOSITORY

MUTANTS = 3  # of each exercise; the golden names have every twelfth
EXERCISES = load_course(REPOSITORY).exercises


def sample(exercise: Exercise) -> Iterator[Attempt]:
    """Some attempts of each kind."""
    bank = load_bank(exercise)
    step = len(bank.mutants) // MUTANTS
    mutants = [Attempt("mutant", m.id, text_of(exercise, m)) for m in bank.mutants[step // 2 :: step]]
    texts = (text_of_pair(exercise, bank, *pair) for pair in pairs_of(exercise, bank))
    pair = Attempt("pair", "", next(filter(None, texts)))
    wrong = [Attempt("wrong", path.stem, path.read_text("utf-8")) for path in exercise.wrong_attempts()[:1]]
    yield from chain(mutants, [pair], wrong, islice(unfinished(exercise, mutants[0]), 1))


@pytest.mark.parametrize("exercise", [pytest.param(each, id=each.id) for each in EXERCISES])
def test_both_say_the_same(sides: Sides, exercise: Exercise) -> None:
    checks = "".join(path.read_text("utf-8") for path in with_neighbours(exercise.checks))
    for attempt in sample(exercise):
        graded, home = sides.told(exercise.id, attempt.text)
        assert (attempt, apart(graded, home)) == (attempt, [])
        alone = () if home.is_done else names(graded)[len(names(home)) :]
        assert (attempt, [name for name in alone if f'"{name}"' not in checks]) == (attempt, [])
