"""What an answer to a recorded call proves by itself, whatever its numbers are."""

from __future__ import annotations

from ..checks.recording import target_of
from ..diagnosis.proven import MUTATED
from .compared import Compared
from .devices import fault_of_device
from .file import Fingerprints
from .fingerprint import TWIN, ReplyFingerprint


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
    elif "refused" in of_this and seen.right.raised == "refused" and seen.reply.raised is None:
        name = _not_refused(fingerprints, index)
    elif "attributes" in of_this and _is_unlike_its_twin(seen.right, seen.found):
        name = _unlike_its_twin(fingerprints, index)
    elif "parameters" in of_this and _has_other_sizes(seen.right, seen.found):
        name = _of_other_sizes(fingerprints, index)
    elif "device" in of_this:
        name = fault_of_device(seen)
    return name if name in {mutant.id for mutant in fingerprints.content.mutants} else ""


def _is_unlike_its_twin(right: ReplyFingerprint, found: ReplyFingerprint) -> bool:
    """Whether a function made another module than asked for, whatever the class does that it is of."""
    return TWIN in right.attributes and found.raised is None and TWIN not in found.attributes


def _unlike_its_twin(fingerprints: Fingerprints, index: int) -> str:
    """The misconception of all mutants that make another module, and whose faults are nowhere else."""
    content, target = fingerprints.content, target_of(fingerprints.calls[index])
    elsewhere = [i for i in fingerprints.facets if target_of(fingerprints.calls[i]) != target]
    mutants = (mutant for mutant in content.mutants if all(mutant.answers[i] == 0 for i in elsewhere))
    answers = ((mutant.id, content.answer(mutant, index)) for mutant in mutants)
    names = {id_ for id_, each in answers if each is not None and _is_unlike_its_twin(content.right(index), each)}
    return names.pop() if len(names) == 1 else ""


def _has_other_sizes(right: ReplyFingerprint, found: ReplyFingerprint) -> bool:
    """Whether a module has the parameters that are due, and some have other sizes: then no weights that are given fit it."""
    return (
        found.raised is None
        and found.parameters.keys() == right.parameters.keys()
        and found.parameters != right.parameters
    )


def _of_other_sizes(fingerprints: Fingerprints, index: int) -> str:
    """The misconception of all mutants whose parameters have other sizes."""
    content = fingerprints.content
    answers = ((mutant.id, content.answer(mutant, index)) for mutant in content.mutants)
    names = {id_ for id_, each in answers if each is not None and _has_other_sizes(content.right(index), each)}
    return names.pop() if len(names) == 1 else ""


def _not_refused(fingerprints: Fingerprints, index: int) -> str:
    content = fingerprints.content
    answers = ((mutant.id, content.answer(mutant, index)) for mutant in content.mutants)
    names = {id_ for id_, answer in answers if answer is not None and answer.raised is None}
    return names.pop() if len(names) == 1 else ""
