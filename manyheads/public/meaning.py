"""What a broken aspect of a check means: where all mutants that break it have one misconception, so has an attempt."""

from __future__ import annotations

from collections.abc import Mapping

from ..checks.failed import AttemptRaised, CheckFailed
from .aspects import compare, pairs_of
from .compared import Compared
from .file import Ask, Fingerprints, PublicCheck
from .metamorphic import is_dropped_at_another_rate

RATE = "dropout_rate_fixed"


def proven_by_aspect(fingerprints: Fingerprints, seen: Mapping[int, Compared]) -> dict[int, str]:
    """By the number of a call, the last of those that break the first aspect of a check: the misconception that the aspect
    means, or that dropout is at work at another rate. Of a check that is asked last nothing is said where another is broken.
    """
    ids = {mutant.id for mutant in fingerprints.content.mutants}
    found: dict[int, str] = {}
    for check in sorted(fingerprints.content.visible, key=lambda c: c.is_last):
        broken = _broken(check, seen)
        if broken is None or (check.is_last and found):
            continue
        ask, calls = broken
        name = ask.means or (RATE if ask.aspect == "dropped" and is_dropped_at_another_rate(pairs_of(calls)) else "")
        if any([o.kind for o in e.found.outputs] != [o.kind for o in e.right.outputs] for e in calls):
            name = ""
        found[next(i for i, each in seen.items() if each is calls[-1])] = name if name in ids else ""
    return {i: name for i, name in found.items() if name}


def _broken(check: PublicCheck, seen: Mapping[int, Compared]) -> tuple[Ask, list[Compared]] | None:
    """The first aspect that is broken: who breaks it may break those that come after it for the same cause."""
    for ask in check.asks:
        for group in ask.calls:
            calls = [seen[i] for i in group if i in seen]
            if len(calls) == len(group) and _breaks(ask, calls):
                return ask, calls
    return None


def _breaks(ask: Ask, calls: list[Compared]) -> bool:
    try:
        compare(ask.aspect, calls)
    except (AttemptRaised, CheckFailed):
        return True
    return False
