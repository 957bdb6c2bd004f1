"""Which parameters an attempt has tells its mistake, where mutants of one misconception alone have the same ones.

Layers that are not registered keep weights of their own: then the numbers of all calls are others, and no mutant's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ..checks.explain import is_dtype_fault
from ..diagnosis.compared import Compared
from ..diagnosis.fingerprint import ReplyFingerprint
from ..diagnosis.recording import Fingerprints
from ..submission.unwritten import UNTOUCHED

Names = tuple[frozenset[str], frozenset[str]]  # of parameters that are too many, and of those that are missing


def proven_by_parameters(fingerprints: Fingerprints, seen: Mapping[int, Compared]) -> dict[int, str]:
    """By the number of each call that is asked for its parameters, and has others: the misconception of all mutants that have
    those in the same calls. Nothing where there are several such misconceptions, or none.
    """
    content = fingerprints.content
    asks = [ask for check in content.visible for ask in check.asks if ask.aspect == "parameters"]
    asked = sorted({i for ask in asks for group in ask.calls for i in group})
    if any(i not in seen or seen[i].found.raised for i in asked):
        return {}
    mine = {i: _others(content.right(i), seen[i].found) for i in asked}
    wrong = [i for i, names in mine.items() if any(names)]

    def has(answer: ReplyFingerprint | None, i: int) -> bool:
        return answer is not None and not answer.raised and _others(content.right(i), answer) == mine[i]

    alike = (mutant.id for mutant in content.mutants if all(has(content.answer(mutant, i), i) for i in asked))
    names = {*alike} - {UNTOUCHED} if wrong else set[str]()  # who answers has written something
    return dict.fromkeys(wrong, names.pop()) if len(names) == 1 else {}


def without_more(seen: Mapping[int, Compared], kept: Collection[int]) -> dict[int, Compared]:
    """The calls as though the parameters that are too many were not there; nothing where one is missing, or none too many.

    Those are zero, so that what else is wrong is seen beside them. kept: the calls that are asked for their parameters, and
    have others.
    """
    if not kept or any(each.right.parameters.keys() - each.found.parameters for each in seen.values()):
        return {}
    return {i: _without_more(each) for i, each in seen.items()}


def _without_more(seen: Compared) -> Compared:
    right, found = seen.right, seen.found
    gradients = {name: each for name, each in found.gradients.items() if name in right.gradients}
    parameters = {name: found.parameters[name] for name in right.parameters}
    return replace(seen, found=replace(found, gradients=gradients, parameters=parameters))


def that_follow(seen: Mapping[int, Compared], kept: Collection[int], raised: Collection[int]) -> set[int]:
    """The calls whose exception of two dtypes follows from layers that are not registered: no `.to` reaches them.

    kept: the calls that are asked for their parameters, and have others. raised: those that raise.
    """
    unregistered = bool(kept) and not any(seen[i].found.parameters for i in kept)
    replies = {i: seen[i].reply.raised for i in raised}
    return {i for i, each in replies.items() if unregistered and each is not None and is_dtype_fault(each)}


def _others(right: ReplyFingerprint, found: ReplyFingerprint) -> Names:
    return frozenset(found.parameters.keys() - right.parameters), frozenset(right.parameters.keys() - found.parameters)
