"""Claims about the bank: every mutant and every pair is named, at any number, and beside unfinished functions."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence

from ...checks.outcome import CheckOutcome
from ...checks.transcript import target_of
from ...course import Course, Exercise
from ...diagnosis import Bank, Mutant, load_bank
from ...diagnosis.recording import Recording
from ...diagnosis.recording_file import current, read
from ...judge.run_checks import Catalogue
from ...result import CheckResult, Diagnosed
from ..mutant_answers import bits
from .attempt_claims import verify_order
from .claim import Behaviour, Claim, Namespace, Trial, TrialRun, behaviour_of, is_first

# The claim that a mistake with a number in it is named at numbers that nobody has listed.

NUMBERS = 3  # for each family
MIDDLE = 0.6  # of the logarithms between the limits; at the limits one mistake turns into another, or into none


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
            outcomes, told = trial(family.make(**knobs))
            if all(o.outcome == "passed" for o in outcomes):
                failures.append(f"{family.id} ({knobs}) passes every check")
            elif is_first(family.id, told):
                held += 1
            else:
                failures.append(f"{family.id} ({knobs}) is named {[d.id for d in told]}")
    says = "a mistake with a number is named at numbers that are not listed"
    next_ = "let a check tell these numbers from others, or narrow the family's limits"
    yield Claim.but_for(failures, exercise.id, says, held + len(failures), next_)


# The claim that a mistake keeps its name while the functions after it are not written yet, graded and at home.

UNFINISHED_SHARE = 0.95


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
        right = behaviour_of(trial({**reference, **stubs})[0])
        for mutant in mutants[:count]:
            attempt = {**mutant.namespace, **stubs}
            outcomes, named = trial(attempt)
            if behaviour_of(outcomes) == right:
                continue  # its fault is in a function that is a stub here
            if is_first(mutant.id, named):
                held += 1
            else:
                names = [d.id for d in named]
                failures.append(f"{mutant.id} ({dict(mutant.faults)}) before {functions[cut]}: {names}")
    says = "a mistake keeps its name while later functions are stubs"
    next_ = "let a check that asks one function alone tell these from others"
    yield Claim.but_for(failures, exercise.id, says, held + len(failures), next_, UNFINISHED_SHARE)


def _stub(*arguments: object, **named: object) -> None:
    raise NotImplementedError


# Claims about the bank: every mutant fails a check and is named, pairs are named, and a mutant fails each check.

PAIR_SHARE = 0.8  # of some thirty that are drawn: each mutant that is added draws others
VERDICT_SHARE = 0.98  # recordings hold no random numbers, and not everything that a hidden check asks
RECORDED_SHARE = 0.98  # another version of torch may raise where the recorded one did not


def verify_mutants(course: Course, catalogue: Catalogue, exercise: Exercise, pairs: int | None) -> Iterator[Claim]:
    """Yield the claims about one exercise's bank; `pairs` of its pairs are tried, all where it is None."""
    bank = load_bank(exercise)
    trial = TrialRun(catalogue, exercise, bank)
    recording = read(exercise.fingerprints)
    missed, misnamed, failed, rows = [], [], set(), []
    verdicts, outcomes = list[str](), {}
    for mutant in bank.mutants:
        found, told = trial.tell(mutant.namespace)
        outcomes[id(mutant)] = behaviour_of(found)
        bad = [o for o in found if o.outcome != "passed"]
        failed |= {o.id for o in bad}
        missed += [] if bad else [f"{_label(mutant)} passes every check"]
        rows.append(bits(found))
        verdicts += _verdicts(_label(mutant), found, told.checks)
        if not is_first(mutant.id, told.diagnosis.named):
            misnamed.append(f"{_label(mutant)} {_taken_by(told.diagnosis.named, bank)}")
        elif {o.suspect for o in bad}.isdisjoint(("", mutant.id)):
            misnamed.append(f"{_label(mutant)} fails only checks that prove {bad[0].suspect}")
    total = len(bank.mutants)
    bank_file = exercise.misconceptions.relative_to(course.root)
    ask = f"let a check in {exercise.checks.relative_to(course.root)} ask for more, or take the mutant out"
    yield Claim.but_for(missed, exercise.id, "every mutant fails a check", total, ask)
    apart = f"give both one id in {bank_file}, or let a check tell them apart"
    yield Claim.but_for(misnamed, exercise.id, "every mutant is named first", total, apart)
    checks = catalogue.checks(exercise)
    idle = [f"{check.id} is failed by no mutant" for check in checks if check.id not in failed]
    add = f"add one that fails it to {bank_file}, or take the check out"
    yield Claim.but_for(idle, exercise.id, "every check is failed by a mutant", len(checks), add)
    says, release = "every visible check gives the hidden check's verdict", f"course release {exercise.id}"
    yield Claim.but_for([*filter(None, verdicts)], exercise.id, says, len(verdicts), release, VERDICT_SHARE)
    yield _recorded(course, exercise, bank, rows)
    yield _pairs(exercise, bank, trial, outcomes, pairs)
    yield from verify_families(exercise, bank, trial.run)
    yield from verify_unfinished(exercise, bank, catalogue.reference(exercise).namespace, recording, trial.run, pairs)
    yield from verify_order(exercise, bank, recording, trial.run, pairs)


def _verdicts(mutant: str, hidden: Sequence[CheckOutcome], visible: Sequence[CheckResult]) -> Iterator[str]:
    """For each visible check what is wrong with its verdict on a mutant: "" where it is the hidden check's."""
    passes = {outcome.id: outcome.outcome == "passed" for outcome in hidden}
    for check in (each for each in visible if each.outcome != "skipped"):
        same = passes[check.id] == (check.outcome == "passed")
        yield "" if same else f"{mutant}: {check.id} {'passes' if passes[check.id] else 'fails'} when graded alone"


def _recorded(course: Course, exercise: Exercise, bank: Bank, seen: Sequence[str]) -> Claim:
    """Return the claim that the kill matrix is right. It has no cases if the record is stale, which the claim about the page shows."""
    recorded = current(exercise)
    pairs = list(zip(bank.mutants, seen, recorded.kills, strict=True)) if recorded else []
    failures = [f"{_label(m)} fails other checks" for m, a, b in pairs if a != b]
    says = "every mutant fails the recorded checks"
    again = f"rm {exercise.fingerprints.relative_to(course.root)}, then course release"
    return Claim.but_for(failures, exercise.id, says, len(pairs), again, RECORDED_SHARE)


def _pairs(exercise: Exercise, bank: Bank, trial: TrialRun, alone: Mapping[int, object], count: int | None) -> Claim:
    """Return the claim that both faults of a pair are named, if the pair behaves differently from each fault alone."""
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
        outcomes, diagnosis = trial.run(namespace)
        if behaviour_of(outcomes) in (alone[id(first)], alone[id(second)]):
            continue
        names = {name for d in diagnosis for name in (d.id, *d.alternatives)}
        expected = [{first.id, second.id}, *_simpler(bank, trial, first, second, behaviour_of(outcomes))]
        if any(each <= names for each in expected):
            held += 1
        else:
            failures.append(f"{_label(first)} and {_label(second)} are named {[d.id for d in diagnosis]}")
    says, apart = "both faults of a pair are named", "let a check tell these pairs from others"
    return Claim.but_for(failures, exercise.id, says, held + len(failures), apart, PAIR_SHARE)


def _simpler(bank: Bank, trial: TrialRun, first: Mutant, second: Mutant, seen: Behaviour) -> Iterator[set[str]]:
    """Yield the names of pairs with fewer changes that behave as this one does: beside the other fault a change may do nothing."""
    for one, other in ((first, second), (second, first)):
        for fewer in (mutant for mutant in bank.mutants if mutant.faults.items() < one.faults.items()):
            namespace = bank.combine(fewer, other)
            if namespace is not None and behaviour_of(trial.run(namespace)[0]) == seen:
                yield {fewer.id, other.id}


def _taken_by(diagnosis: Sequence[Diagnosed], bank: Bank) -> str:
    """Return what the mutant is named instead."""
    if not diagnosis:
        return "is given no name"
    other = next((m for m in bank.mutants if m.id == diagnosis[0].id), None)
    return f"is named {diagnosis[0].id}, as {_label(other)} is" if other else f"is named {diagnosis[0].id}"


def _label(mutant: Mutant) -> str:
    return f"{mutant.id} ({', '.join(f'{k}={v!r}' for k, v in mutant.faults.items())})"
