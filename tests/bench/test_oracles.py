"""The comparison of learned and fixed oracles counts the verdicts that would be lost without one.

A verdict is a check that fails for a wrong program.
"""

from collections import Counter

from bench.oracles import Program, losses_of, measure
from manyheads.course import load_course
from manyheads.diagnosis.fault_dictionary import OracleUse, PublicCheck
from tests.make import TINY

# a correct program: it fails no check and violates no oracle
RIGHT = Program(frozenset(), frozenset(), is_right=True)


def check_with_oracles(id_: str, *oracles: str, is_last: bool = False) -> PublicCheck:
    """Return a check of one call with these learned oracles."""
    return PublicCheck(
        id=id_,
        title="",
        layer=1,
        hint="",
        points=1,
        calls=(0,),
        facets=("outputs",),
        asks=tuple(OracleUse(aspect=oracle, calls=((0,),)) for oracle in oracles),
        is_last=is_last,
    )


def failing_program(fails: str, *oracles: str) -> Program:
    """Return a wrong program.

    fails: the hidden checks that it fails. oracles: the oracles that its only call violates.
    """
    return Program(frozenset(fails.split()), frozenset((oracle, (0,)) for oracle in oracles))


def test_a_verdict_is_lost_if_only_a_learned_oracle_gives_it() -> None:
    programs = [
        RIGHT,
        failing_program("a", "finite"),
        failing_program("a", "finite", "shape"),
        failing_program("a", "zeros"),
        failing_program("a"),  # the learned oracles miss it, too
    ]
    losses = losses_of([check_with_oracles("a", "finite", "zeros")], programs)
    assert (losses.verdicts, losses.programs, losses.unseen) == (3, 3, 1)
    assert losses.lost == Counter({"finite": 1})


def test_a_fixed_oracle_that_fails_a_right_attempt_is_not_used() -> None:
    blamed = Program(frozenset(), frozenset({("values", (0,))}), is_right=True)
    losses = losses_of(
        [check_with_oracles("a", "finite")], [blamed, failing_program("a", "finite", "values")]
    )
    assert losses.lost == Counter({"finite": 1})


def test_a_fixed_oracle_fails_no_more_passing_programs_than_the_learned_ones() -> None:
    programs = [RIGHT, failing_program("", "values"), failing_program("a", "finite", "values")]
    assert losses_of([check_with_oracles("a", "finite")], programs).lost == Counter({"finite": 1})
    assert not losses_of([check_with_oracles("a", "values")], programs).lost


def test_a_check_that_runs_last_judges_only_programs_that_pass_the_others() -> None:
    checks = [check_with_oracles("a", "values"), check_with_oracles("b", "finite", is_last=True)]
    failing_both = failing_program("a b", "values", "finite")
    assert losses_of(checks, [RIGHT, failing_both]).verdicts == 1
    assert losses_of(checks, [RIGHT, failing_both, failing_program("b", "finite")]).verdicts == 2


def test_the_programs_of_a_course_run_and_are_counted() -> None:
    (exercise,) = load_course(TINY).exercises
    losses = measure(TINY, 1, exercise.id)
    assert losses.verdicts > 10
    assert losses.programs == 8
    assert losses.unseen == 0
