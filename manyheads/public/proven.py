"""What an answer to a recorded call proves by itself, whatever its numbers are."""

from __future__ import annotations

from ..diagnosis.proven import MUTATED
from .compared import Compared
from .devices import fault_of_device
from .file import Fingerprints


def proven_by_answer(fingerprints: Fingerprints, index: int, seen: Compared) -> str:
    """An argument that was changed, a tensor of another device, a refusal that did not come: or "".

    Only what a visible check asks, of this call or (of arguments) of any, is looked at, and only what mutants of the exercise
    stand for is named; a refusal, where all of them that do not refuse the call have one name.
    """
    asks = [ask for check in fingerprints.content.checks for ask in check.asks]
    of_this = {ask.aspect for ask in asks if any(index in group for group in ask.calls)}
    name = ""
    if seen.reply.mutated and not seen.right.mutated and any(ask.aspect == "mutated" for ask in asks):
        name = MUTATED
    elif "refused" in of_this and seen.right.raised == "refused" and seen.reply.raised is None:
        name = _not_refused(fingerprints, index)
    elif "device" in of_this:
        name = fault_of_device(seen)
    return name if name in {mutant.id for mutant in fingerprints.content.mutants} else ""


def _not_refused(fingerprints: Fingerprints, index: int) -> str:
    content = fingerprints.content
    answers = ((mutant.id, content.answer(mutant, index)) for mutant in content.mutants)
    names = {id_ for id_, answer in answers if answer is not None and answer.raised is None}
    return names.pop() if len(names) == 1 else ""
