"""The claim that a mistake keeps its name while the functions after it are not written yet, graded and at home."""

from __future__ import annotations

import random
from collections.abc import Iterator

from ...checks.local import LocalRecordingRunner
from ...checks.recording import target_of
from ...course import Exercise
from ...diagnosis import Bank
from ...diagnosis.recording import Fingerprints
from ...public.check import check_attempt
from .claim import Claim
from .trial import Namespace, Trial, behaviour_of, is_first

UNFINISHED_SHARE = 0.95


def verify_unfinished(
    exercise: Exercise, bank: Bank, reference: Namespace, fingerprints: Fingerprints, trial: Trial, count: int | None
) -> Iterator[Claim]:
    """The claim, tried with `count` mutants, all where it is None. None where there is but one function."""
    asked = {target_of(call) for call in fingerprints.calls}
    functions = [name for name in reference if name in asked]  # in the order of their definitions
    if len(functions) < 2:
        return
    mutants = list(bank.mutants)
    random.Random(exercise.id).shuffle(mutants)
    held, failures = 0, []
    for cut in range(1, len(functions)):
        stubs = dict.fromkeys(functions[cut:], _stub)
        right = behaviour_of(trial({**reference, **stubs})[0])
        for mutant in mutants[:count]:
            attempt = {**mutant.namespace, **stubs}
            outcomes, graded = trial(attempt)
            if behaviour_of(outcomes) == right:
                continue  # its fault is in a function that is a stub here
            at_home = check_attempt(fingerprints, LocalRecordingRunner(attempt)).diagnosis
            for told, where in ((graded, "graded"), (at_home, "at home")):
                if is_first(mutant.id, told):
                    held += 1
                else:
                    names = [d.id for d in told]
                    failures.append(f"{mutant.id} ({dict(mutant.faults)}) before {functions[cut]}, {where}: {names}")
    yield Claim(
        exercise.id,
        "a mistake keeps its name while later functions are stubs",
        held,
        held + len(failures),
        tuple(failures),
        UNFINISHED_SHARE,
        "let a check that asks one function alone tell these from others",
    )


def _stub(*arguments: object, **named: object) -> None:
    raise NotImplementedError
