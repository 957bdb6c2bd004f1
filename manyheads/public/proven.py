"""What an answer to a recorded call proves by itself, whatever its numbers are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..checks.recording import target_of
from ..diagnosis.compared import Compared
from ..diagnosis.fingerprint import TWIN, ReplyFingerprint
from ..diagnosis.proven import MUTATED
from ..diagnosis.recording import Fingerprints, RecordedMutant
from .devices import fault_of_device


def proven_by_answer(fingerprints: Fingerprints, index: int, seen: Compared) -> str:
    """An argument that was changed, a tensor of another device, a refusal that did not come, a module unlike its twin, layers
    of other sizes: or "".

    Only what a visible check asks, of this call or (of arguments) of any, is looked at, and only what mutants of the exercise
    stand for is named; a refusal, a twin and sizes, where all of them that answer so have one name.
    """
    asks = [ask for check in fingerprints.content.checks for ask in check.asks]
    of_this = {ask.aspect for ask in asks if any(index in group for group in ask.calls)}
    name = ""
    if seen.reply.mutated and not seen.right.mutated and any(ask.aspect == "mutated" for ask in asks):
        name = MUTATED
    elif "refused" in of_this and _is_no_refusal(seen.right, seen.found):
        name = _name_of_all(fingerprints, index, fingerprints.content.mutants, _is_no_refusal)
    elif "attributes" in of_this and _is_unlike_its_twin(seen.right, seen.found):
        name = _unlike_its_twin(fingerprints, index)
    elif "parameters" in of_this and _has_other_sizes(seen.right, seen.found):
        name = _name_of_all(fingerprints, index, fingerprints.content.mutants, _has_other_sizes)
    elif "device" in of_this:
        name = fault_of_device(seen)
    return name if name in {mutant.id for mutant in fingerprints.content.mutants} else ""


def _is_unlike_its_twin(right: ReplyFingerprint, found: ReplyFingerprint) -> bool:
    """Whether a function made another module than asked for, whatever the class does that it is of."""
    return TWIN in right.attributes and found.raised is None and TWIN not in found.attributes


def _unlike_its_twin(fingerprints: Fingerprints, index: int) -> str:
    """The misconception of all mutants that make another module, and whose faults are nowhere else."""
    target = target_of(fingerprints.calls[index])
    elsewhere = [i for i in fingerprints.facets if target_of(fingerprints.calls[i]) != target]
    mutants = [m for m in fingerprints.content.mutants if all(m.answers[i] == 0 for i in elsewhere)]
    return _name_of_all(fingerprints, index, mutants, _is_unlike_its_twin)


def _has_other_sizes(right: ReplyFingerprint, found: ReplyFingerprint) -> bool:
    """Whether a module has the parameters that are due, and some have other sizes: then no weights that are given fit it."""
    return (
        found.raised is None
        and found.parameters.keys() == right.parameters.keys()
        and found.parameters != right.parameters
    )


def _is_no_refusal(right: ReplyFingerprint, found: ReplyFingerprint) -> bool:
    return right.raised == "refused" and found.raised is None


def _name_of_all(
    fingerprints: Fingerprints,
    index: int,
    mutants: Sequence[RecordedMutant],
    answers_so: Callable[[ReplyFingerprint, ReplyFingerprint], bool],
) -> str:
    """The misconception of all those of the mutants that answer a call in this way; "" where there are several, or none."""
    content, right = fingerprints.content, fingerprints.content.right(index)
    answers = ((mutant.id, content.answer(mutant, index)) for mutant in mutants)
    names = {id_ for id_, each in answers if each is not None and answers_so(right, each)}
    return names.pop() if len(names) == 1 else ""
