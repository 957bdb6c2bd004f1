"""Which misconceptions explain one function's answers, where nothing explains those of all functions together.

An attempt is unfinished most of its life: beside a function with a mistake stands one that is not written yet, or one
with another mistake. What is written is explained whatever its neighbours are.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..checks.local import CachedRunner
from ..checks.recording import BatchRunner, Exchange, target_of
from .agree import agree
from .bank import Bank
from .search import Fault, Part, explain_values
from .table import Table

PAIRS = 0  # a function's calls are too few to tell two faults together from one that nobody has listed


def explain_functions(
    bank: Bank, table: Table, subject: BatchRunner, reference: CachedRunner, exchanges: Sequence[Exchange]
) -> tuple[Fault, ...] | None:
    """The faults of each function whose answers are explained on every call of it; None if there is no such function.

    What explains a function must not contradict an earlier one, which it may call: there it changes nothing, or
    answers as the attempt does. For several functions only: where there is one, its answers are all answers. Raises
    AttemptEnded if a probe ends the attempt's process.
    """
    asked = {target_of(e.call) for e in exchanges}
    functions = [name for name in reference.namespace if name in asked]  # in the order of their definitions
    if len(functions) < 2:
        return None
    found: dict[str, Fault] = {}
    earlier: list[Exchange] = []
    for function in functions:
        own = [e for e in exchanges if target_of(e.call) == function]
        if any(_is_answered(e) for e in own) and not all(agree(e.reply, reference.execute(e.call)) for e in own):
            part = Part(function, tuple(earlier))
            for fault in explain_values(bank, table, subject, reference, own, PAIRS, part) or ():
                found.setdefault(fault.mutant.id, fault)
        earlier += [e for e in own if _is_answered(e)]
    return tuple(found.values()) or None


def _is_answered(exchange: Exchange) -> bool:
    """Whether a tensor came. Without any, a function has no values that could be explained."""
    return any(out.tensor is not None for out in exchange.reply.outputs)
