"""How many verdicts of `course check` would be lost with eight fixed oracles.

    python -m bench.oracles [--every N] [--only EXERCISE …]

The programs are an exercise's right attempts, its wrong attempts, and one of N mutants. They answer
the recorded calls in this process. In the trial, a visible check declares some of the fixed
oracles, for all its calls, and keeps its metamorphic relations. It declares the fixed oracles that
find the most failures, that blame no right attempt, and that blame no more passing programs than
the learned oracles do. So the comparison flatters the fixed oracles.

A verdict is a failed visible check of a program that also fails the hidden check. It is lost if the
trial passes the program. The first learned oracle that the program violates carries the verdict.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from io import StringIO
from itertools import chain, combinations
from pathlib import Path

from manyheads.authoring.choose_recorded_calls import recorded_calls
from manyheads.authoring.choose_visible_oracles import (
    OF_COPIES,
    OF_SEVERAL,
    Groups,
    ViolatedOracles,
    oracles_violated_by,
)
from manyheads.authoring.trusted_program import MutantRun, answers_of
from manyheads.checks.runner import namespace_of
from manyheads.course import load_course
from manyheads.diagnosis import load_bank
from manyheads.diagnosis.bank import Namespace
from manyheads.diagnosis.fault_dictionary import Oracle, PublicCheck
from manyheads.diagnosis.recording_file import read
from manyheads.judge.judge_process import usable_cpu_count
from manyheads.judge.run_hidden_checks import Catalogue

ROOT = Path(__file__).parents[1]
FIXED: tuple[Oracle, ...] = (
    *("answered", "refused", "shape", "dtype", "values", "gradients", "parameters"),
    "mutated",  # arguments unchanged
)
RELATIONS: frozenset[Oracle] = frozenset({*OF_SEVERAL, *OF_COPIES, "zeros"})


@dataclass(frozen=True)
class Program:
    """A program with its failed hidden checks, and the oracles that it violates."""

    fails: frozenset[str]
    violated: ViolatedOracles
    is_right: bool = False


@dataclass
class Losses:
    """The verdicts and programs of one exercise.

    Attributes:
        verdicts: the number of verdicts.
        lost: the number of lost verdicts, by the learned oracle that carries them.
        programs: the number of programs with a verdict.
        unseen: the number of these programs all of whose verdicts are lost.
    """

    verdicts: int = 0
    lost: Counter[Oracle] = field(default_factory=Counter)
    programs: int = 0
    unseen: int = 0


def programs_of(root: Path, id_: str, stride: int) -> list[Program]:
    """Run the attempts at an exercise and one of n mutants, and return them as programs."""
    course = load_course(root)
    exercise = next(e for e in course.exercises if e.id == id_)
    recording, catalogue = read(exercise.fingerprints), Catalogue(course)
    recorded = recorded_calls(catalogue, exercise)
    groups, mutant_run = (
        [*map(groups_of, recording.visible)],
        MutantRun(catalogue, exercise, recorded),
    )

    def run(namespace: Namespace, row: str = "", is_right: bool = False) -> Program:
        answers = answers_of(recorded, namespace)
        violated = oracles_violated_by([answer.observed for answer in answers], groups)
        digits = row or mutant_run.kill_row(namespace, answers)
        failed = [id_ for id_, digit in zip(recording.hidden, digits, strict=True) if digit == "1"]
        return Program(frozenset(failed), violated, is_right)

    right = [run(namespace_of(path), is_right=True) for path in exercise.right_attempts()]
    wrong = [run(namespace_of(path)) for path in exercise.wrong_attempts()]
    mutants = [*zip(load_bank(exercise).mutants, recording.kills, strict=True)][::stride]
    return [*right, *wrong, *(run(mutant.namespace, row) for mutant, row in mutants)]


def learned_by(check: PublicCheck) -> list[tuple[Oracle, tuple[int, ...]]]:
    """Return the learned oracles of a check in their order, each with a group of calls."""
    return [(use.oracle, group) for use in check.oracle_uses for group in use.calls]


def calls_of(check: PublicCheck) -> set[int]:
    """Return the calls to which a check may apply an oracle about one call."""
    groups = (group for oracle, group in learned_by(check) if oracle not in RELATIONS)
    return {*check.calls, *chain.from_iterable(groups)}


def groups_of(check: PublicCheck) -> Groups:
    """Return the groups of calls to which the learned and the fixed oracles are applied."""
    groups = dict[Oracle, set[tuple[int, ...]]]()
    for oracle in FIXED:
        groups[oracle] = {(i,) for i in calls_of(check)}
    for oracle, group in learned_by(check):
        groups.setdefault(oracle, set()).add(group)
    return {oracle: sorted(calls) for oracle, calls in groups.items()}


def best_declaration(check: PublicCheck, programs: Sequence[Program]) -> ViolatedOracles:
    """Return the oracles of a check in the trial, each with a group of calls."""
    learned = frozenset(learned_by(check))
    relations = frozenset(pair for pair in learned if pair[0] in RELATIONS)
    right = [program for program in programs if program.is_right]
    passing = [program for program in programs if check.id not in program.fails]
    failing = [program for program in programs if check.id in program.fails]
    allowed = _count_violating(passing, learned)
    best, most_failures = relations, -1
    for size in range(len(FIXED) + 1):
        for declared in combinations(FIXED, size):
            pairs = relations | {(oracle, (i,)) for oracle in declared for i in calls_of(check)}
            failures = _count_violating(failing, pairs)
            if failures <= most_failures or _count_violating(right, pairs):
                continue
            if _count_violating(passing, pairs) <= allowed:
                best, most_failures = pairs, failures
    return best


def _count_violating(programs: Sequence[Program], pairs: ViolatedOracles) -> int:
    return sum(not program.violated.isdisjoint(pairs) for program in programs)


def losses_of(checks: Sequence[PublicCheck], programs: Sequence[Program]) -> Losses:
    """Return the losses in these visible checks.

    A check that runs last judges only the programs that pass all others.
    """
    losses, detected, lost = Losses(), set[int](), set[int]()
    first = chain.from_iterable(learned_by(check) for check in checks if not check.is_last)
    first_pairs = frozenset(first)
    passing_first = [p for p in programs if p.violated.isdisjoint(first_pairs)]
    for check in checks:
        judged = passing_first if check.is_last else programs
        declared = best_declaration(check, judged)
        for program in judged:
            violated = [
                oracle for oracle, calls in learned_by(check) if (oracle, calls) in program.violated
            ]
            if check.id not in program.fails or not violated:
                continue
            losses.verdicts += 1
            if program.violated.isdisjoint(declared):
                losses.lost[violated[0]] += 1
                lost.add(id(program))
            else:
                detected.add(id(program))
    losses.programs, losses.unseen = len(detected | lost), len(lost - detected)
    return losses


def measure(root: Path, stride: int, id_: str) -> Losses:
    """Return the losses of an exercise of the course in a folder."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        programs = programs_of(root, id_, stride)
    exercise = next(e for e in load_course(root).exercises if e.id == id_)
    return losses_of(read(exercise.fingerprints).visible, programs)


def main() -> None:
    """Print the losses of all exercises together."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("--only", nargs="*", default=[], metavar="EXERCISE")
    options = parser.parse_args()
    ids = [e.id for e in load_course(ROOT).exercises if not options.only or e.id in options.only]
    with ProcessPoolExecutor(usable_cpu_count()) as pool:
        losses = [*pool.map(partial(measure, ROOT, options.every), ids)]
    lost = sum((part.lost for part in losses), Counter[Oracle]())
    verdicts = sum(part.verdicts for part in losses)
    print(f"{lost.total()} of {verdicts} verdicts are lost ({lost.total() / verdicts:.1%})")
    programs = sum(part.programs for part in losses)
    unseen = sum(part.unseen for part in losses)
    print(f"{unseen} of {programs} programs with a verdict pass every visible check of the trial")
    for oracle, count in lost.most_common():
        print(f"{oracle}: {count}")


if __name__ == "__main__":
    main()
