"""Name what the parameters of an attempt prove, and leave them out of what else is to be explained.

Which parameters an attempt has tells its mistake, where mutants of one misconception alone have the same ones. Layers that
are not registered keep weights of their own: then the numbers of all calls are others, and no mutant's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ..checks.explain import is_dtype_fault
from ..submission.unwritten import UNTOUCHED
from .fingerprint import ReplyFingerprint
from .observe import Observed
from .recording import Recording

UNREGISTERED = "params_not_registered"
Names = tuple[frozenset[str], frozenset[str]]  # of parameters that are too many, and of those that are missing


def proven_by_parameters(recording: Recording, seen: Mapping[int, Observed]) -> dict[int, str]:
    """By the number of each call that is asked for its parameters, and has others.

    The misconception of all mutants that have those in the same calls. Nothing where there are several such
    misconceptions, or none.
    """
    asks = [ask for check in recording.visible for ask in check.asks if ask.aspect == "parameters"]
    asked = sorted({i for ask in asks for group in ask.calls for i in group})
    if any(i not in seen or seen[i].found.raised for i in asked):
        return {}
    mine = {i: _others(recording.right(i), seen[i].found) for i in asked}
    wrong = [i for i, names in mine.items() if any(names)]

    def has(answer: ReplyFingerprint | None, i: int) -> bool:
        return answer is not None and not answer.raised and _others(recording.right(i), answer) == mine[i]

    alike = (mutant.id for mutant in recording.mutants if all(has(recording.answer(mutant, i), i) for i in asked))
    names = {*alike} - {UNTOUCHED} if wrong else set[str]()  # who answers has written something
    if wrong and UNREGISTERED in {mutant.id for mutant in recording.mutants} and _hides_layers(mine.values(), seen):
        names = {UNREGISTERED}
    return dict.fromkeys(wrong, names.pop()) if len(names) == 1 else {}


def _hides_layers(others: Collection[Names], seen: Mapping[int, Observed]) -> bool:
    """Return whether parameters are missing, none are too many, and tensors of another dtype take part: no `.to` reaches them."""
    raised = (comparison.reply.raised for comparison in seen.values())
    return all(missing and not extra for extra, missing in others) and any(r and is_dtype_fault(r) for r in raised)


def without_more(seen: Mapping[int, Observed], kept: Collection[int]) -> dict[int, Observed]:
    """Return the calls as though the parameters that are too many were not there; nothing where one is missing, or none too many.

    Those are zero, so that what else is wrong is seen beside them. kept: the calls that are asked for their parameters, and
    have others.
    """
    if not kept or any(
        comparison.right.parameters.keys() - comparison.found.parameters for comparison in seen.values()
    ):
        return {}
    return {i: _without_more(each) for i, each in seen.items()}


def _without_more(seen: Observed) -> Observed:
    right, found = seen.right, seen.found
    gradients = {name: each for name, each in found.gradients.items() if name in right.gradients}
    parameters = {name: found.parameters[name] for name in right.parameters}
    return replace(seen, found=replace(found, gradients=gradients, parameters=parameters))


def _others(right: ReplyFingerprint, fingerprint: ReplyFingerprint) -> Names:
    return frozenset(fingerprint.parameters.keys() - right.parameters), frozenset(
        right.parameters.keys() - fingerprint.parameters
    )
