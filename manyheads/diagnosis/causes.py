"""Whether misconceptions that are proved can be why something else is wrong.

What is proved by itself, such as a dropout that is never used, need not be why the values are wrong: if it were named as
though it were, a student would mend it and find nothing changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from typing import TypeVar

from ..checks.implementation import Runner
from ..checks.recording import Exchange

Place = TypeVar("Place")  # where something is wrong: a check, or a call


def can_cause(
    names: Collection[str],
    unexplained: Collection[Place],
    wrong: Set[Place],
    reached_by: Callable[[], Mapping[str, Sequence[Set[Place]]]],
) -> bool:
    """Whether mutants of these misconceptions together go wrong in all unexplained places, and nowhere else.

    Args:
        names: ids of misconceptions that are proved.
        unexplained: where the attempt is wrong, and no mutant answers as it does.
        wrong: all places where the attempt is wrong.
        reached_by: for each misconception where each of its mutants goes wrong; nothing at all if that is not known,
            and then this is True. Called only if it is needed.
    """
    if not names or not unexplained:
        return True
    known = reached_by()
    reached = {place for name in names for places in known.get(name, ()) if places <= wrong for place in places}
    return not known or reached.issuperset(unexplained)


def learns_more(reference: Runner, exchanges: Iterable[Exchange]) -> bool:
    """Whether the outputs depend on parameters that the reference does not have: then no mutant need have the same values.

    A gradient that is not zero proves it.
    """
    for exchange in exchanges:
        arrived = {name for name, g in exchange.reply.gradients.items() if g is not None and bool(g.any())}
        if arrived and arrived - reference.execute(exchange.call).gradients.keys():
            return True
    return False
