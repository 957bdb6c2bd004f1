"""What a broken aspect of a check means: where all mutants that break it have one misconception, so has an attempt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..checks.failed import AttemptRaised, CheckFailed
from .aspects import compare
from .compared import Compared
from .file import Ask, Fingerprints, PublicCheck


def proven_by_aspect(fingerprints: Fingerprints, seen: Mapping[int, Compared]) -> dict[int, str]:
    """By the number of the last call of each group that breaks an aspect: the misconception that the aspect means.

    Of a check that is asked last nothing is said where another is broken.
    """
    visible = fingerprints.content.visible
    first = {i: ask.means for check in visible if not check.is_last for i, ask in _broken(check, seen)}
    last = {i: ask.means for check in visible if check.is_last for i, ask in _broken(check, seen)}
    return {i: name for i, name in (first or last).items() if name}


def _broken(check: PublicCheck, seen: Mapping[int, Compared]) -> Iterator[tuple[int, Ask]]:
    for ask in check.asks:
        for group in ask.calls:
            if all(i in seen for i in group) and _breaks(ask, [seen[i] for i in group]):
                yield group[-1], ask


def _breaks(ask: Ask, calls: list[Compared]) -> bool:
    try:
        compare(ask.aspect, calls)
    except (AttemptRaised, CheckFailed):
        return True
    return False
