"""Claims about the bank: every mutant and every pair is named, at any number, and beside unfinished functions."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Collection, Iterator, Mapping, Sequence

from ...checks.transcript import target_of
from ...course import Course, Exercise
from ...diagnosis import Bank, Mutant, load_bank
from ...diagnosis.family import Namespace
from ...diagnosis.recording import Recording
from ...diagnosis.recording_file import current
from ...judge.run_checks import Catalogue
from ...result import CheckResult
from .attempt_claims import verify_order
from .claim import Claim, Told, Trial, TrialRun

NUMBERS = 3  # for each family
MIDDLE = 0.4  # of the logarithms between the limits; at the limits one mistake turns into another, or into none


def verify_families(exercise: Exercise, bank: Bank, trial: Trial) -> Iterator[Claim]:
    """Yield the claim. None where the bank has no family."""
    if not bank.families:
        return
    draw = random.Random(exercise.id)
    held, failures = 0, []
    for family in bank.families:
        low, high = math.log(family.low), math.log(family.high)
        margin = (high - low) * (1 - MIDDLE) / 2
        for _ in range(NUMBERS):
            knobs = family.knobs(math.exp(draw.uniform(low + margin, high - margin)))
            told = trial(family.make(**knobs))
            if told.is_first(family.id):
                held += 1
            else:
                failures.append(f"{family.id} ({knobs}) is named {told.names}")
    says = "a mistake with a number is named at numbers that are not listed"
    next_ = "let a check tell these numbers from others, or narrow the family's limits"
    yield Claim.but_for(failures, exercise.id, says, held + len(failures), next_)


UNFINISHED_SHARE = 0.9


def verify_unfinished(
    exercise: Exercise, bank: Bank, reference: Namespace, recording: Recording, trial: Trial, count: int | None
) -> Iterator[Claim]:
    """Yield the claim, tried with `count` mutants, all where it is None. None where there is but one function."""
    asked = {target_of(call) for call in recording.calls}
    functions = [name for name in reference if name in asked]  # in the order of their definitions
    if len(functions) < 2:
        return
    mutants = list(bank.mutants)
    random.Random(exercise.id).shuffle(mutants)
    held, failures = 0, []
    for cut in range(1, len(functions)):
        stubs = dict.fromkeys(functions[cut:], _stub)
        right = trial({**reference, **stubs})
        for mutant in mutants[:count]:
            told = trial({**mutant.namespace, **stubs})
            if told.answers_as(right):
                continue  # its fault is in a function that is a stub here
            if told.is_first(mutant.id):
                held += 1
            else:
                failures.append(f"{_label(mutant)} before {functions[cut]}: {told.names}")
    says = "a mistake keeps its name while later functions are stubs"
    next_ = "let a check that asks one function alone tell these from others"
    yield Claim.but_for(failures, exercise.id, says, held + len(failures), next_, UNFINISHED_SHARE)


def _stub(*arguments: object, **named: object) -> None:
    raise NotImplementedError


PAIR_SHARE = 0.55  # of some thirty that are drawn: each mutant that is added draws others
VERDICT_SHARE = 0.98  # recordings hold no random numbers, and not everything that a hidden check asks


def verify_mutants(course: Course, catalogue: Catalogue, exercise: Exercise, pairs: int | None) -> Iterator[Claim]:
    """Yield the claims about one exercise's bank; `pairs` of its pairs are tried, all where it is None.

    Which hidden checks a mutant fails is recorded. Where the recording is stale, as another claim says, there is none of these.
    """
    if (recording := current(exercise)) is None:
        return
    bank, hidden = load_bank(exercise), recording.hidden
    failed = [[*itertools.compress(hidden, map(int, row))] for row in recording.kills]
    missed = [f"{_label(m)} passes every check" for m, some in zip(bank.mutants, failed, strict=True) if not some]
    bank_file = exercise.misconceptions.relative_to(course.root)
    ask = f"let a check in {exercise.checks.relative_to(course.root)} ask for more, or take the mutant out"
    yield Claim.but_for(missed, exercise.id, "every mutant fails a check", len(failed), ask)
    idle = [f"{id_} is failed by no mutant" for id_ in hidden if not any(id_ in some for some in failed)]
    add = f"add one that fails it to {bank_file}, or take the check out"
    yield Claim.but_for(idle, exercise.id, "every check is failed by a mutant", len(hidden), add)
    trial = TrialRun(catalogue, exercise, bank, recording)
    known, alone = (
        dict[object, Told](),
        dict[int, Told](),
    )  # of mutants that answer alike by the record, the first is asked
    for mutant, recorded in zip(bank.mutants, recording.mutants, strict=True):
        if (key := (mutant.id, recorded.answers)) not in known:
            known[key] = trial.told(mutant.namespace)
        alone[id(mutant)] = known[key]
    misnamed, verdicts, asked = [], list[str](), 0
    for mutant, some in zip(bank.mutants, failed, strict=True):
        told = alone[id(mutant)]
        verdicts += _verdicts(_label(mutant), some, told.checks)
        if trial.stops(told):
            continue
        asked += 1
        if not told.is_first(mutant.id) and (told.names or mutant.id not in trial.suspects(mutant.namespace, some)):
            misnamed.append(f"{_label(mutant)} is named {told.names}")
        elif told.names and (other := trial.proves_another(mutant.namespace, some, mutant.id)):
            misnamed.append(f"{_label(mutant)} fails only checks that prove {other}")
    apart = f"give both one id in {bank_file}, or let a check tell them apart"
    yield Claim.but_for(misnamed, exercise.id, "every mutant that answers is named first", asked, apart)
    says, release = "every visible check gives the hidden check's verdict", f"course release {exercise.id}"
    yield Claim.but_for([*filter(None, verdicts)], exercise.id, says, len(verdicts), release, VERDICT_SHARE)
    yield _pairs(exercise, bank, trial.told, alone, pairs)
    yield from verify_families(exercise, bank, trial.told)
    yield from verify_unfinished(exercise, bank, catalogue.reference(exercise).namespace, recording, trial.told, pairs)
    yield from verify_order(exercise, bank, trial.told, alone, pairs)


def _verdicts(mutant: str, failed: Collection[str], visible: Sequence[CheckResult]) -> Iterator[str]:
    """For each visible check what is wrong with its verdict on a mutant: "" where it is the hidden check's."""
    for check in (each for each in visible if each.outcome != "skipped"):
        passes = check.id not in failed
        same = passes == (check.outcome == "passed")
        yield "" if same else f"{mutant}: {check.id} {'passes' if passes else 'fails'} when graded alone"


def _pairs(exercise: Exercise, bank: Bank, trial: Trial, alone: Mapping[int, Told], count: int | None) -> Claim:
    """Return the claim that both faults of a pair are named, if the pair answers otherwise than each fault alone."""
    candidates = [
        (a, b)
        for a, b in itertools.combinations(bank.mutants, 2)
        if a.id != b.id and not a.faults.keys() & b.faults.keys()
    ]
    random.Random(exercise.id).shuffle(candidates)
    held, failures = 0, []
    for first, second in candidates if count is None else candidates[:count]:
        namespace = bank.combine(first, second)
        if namespace is None or any(m.faults == {**first.faults, **second.faults} for m in bank.mutants):
            continue  # the two cannot meet, or are a mutant of their own
        told = trial(namespace)
        if any(told.answers_as(alone[id(each)]) for each in (first, second)):
            continue
        found = {name for d in told.named for name in (d.id, *d.alternatives)}
        expected = itertools.chain([{first.id, second.id}], _simpler(bank, trial, first, second, told))
        if any(each <= found for each in expected):
            held += 1
        else:
            failures.append(f"{_label(first)} and {_label(second)} are named {told.names}")
    says, apart = "both faults of a pair are named", "let a check tell these pairs from others"
    return Claim.but_for(failures, exercise.id, says, held + len(failures), apart, PAIR_SHARE)


def _simpler(bank: Bank, trial: Trial, first: Mutant, second: Mutant, seen: Told) -> Iterator[set[str]]:
    """Yield the names of pairs with fewer changes that behave as this one does: beside the other fault a change may do nothing."""
    for one, other in ((first, second), (second, first)):
        for fewer in (mutant for mutant in bank.mutants if mutant.faults.items() < one.faults.items()):
            namespace = bank.combine(fewer, other)
            if namespace is not None and trial(namespace).answers_as(seen):
                yield {fewer.id, other.id}


def _label(mutant: Mutant) -> str:
    return f"{mutant.id} ({', '.join(f'{k}={v!r}' for k, v in mutant.faults.items())})"
