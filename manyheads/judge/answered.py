"""Whether a check that passed got answers: without answers a check does not pass.

Some checks ask for what an attempt without any answer also does: leave an argument unchanged, or refuse an input. So
every function and class that the check called must have returned what the reference returns, a tensor or a number, at
least once, and never anything else. A refusal counts only if an allowed input was answered too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..box.worker.answers import Output
from ..checks.implementation import AttemptRaised, CheckFailed
from ..checks.recording import Exchange, target_of
from ..checks.sanitize import kind_name


class AsksNothingError(Exception):
    """A check that an attempt cannot fail by not answering. That is a fault of the check."""


def unanswered(exchanges: Sequence[Exchange], kinds: Mapping[str, str]) -> CheckFailed | AsksNothingError | None:
    """Why a check that passed does not count; None if it counts.

    Args:
        exchanges: the calls of this check, with their replies.
        kinds: what the reference returns ("tensor", "float"), by the name of the function or class.
    """
    if not exchanges:
        return AsksNothingError("it asks the attempt nothing")
    for target in dict.fromkeys(target_of(exchange.call) for exchange in exchanges):
        if target not in kinds:
            return AsksNothingError(
                f"it asks {target} for nothing that the reference answers: let it ask an allowed input, too"
            )
    for exchange in exchanges:
        wanted = kinds[target_of(exchange.call)]
        for out in exchange.reply.outputs:
            if not _is_answer(out, wanted):
                return CheckFailed(f"{kind_name(wanted)} was expected; yours returned {kind_name(out.kind)}")
    answered = {target_of(exchange.call) for exchange in exchanges if exchange.reply.outputs}
    for exchange in exchanges:
        if target_of(exchange.call) not in answered:
            raised = exchange.reply.raised
            return CheckFailed("a module is built, and never answers") if raised is None else AttemptRaised(raised)
    return None


def _is_answer(out: Output, wanted: str) -> bool:
    """Whether this is a tensor if one is wanted, or a number if one is wanted."""
    if wanted == "tensor":
        return out.kind == "tensor"
    return out.tensor is not None and out.tensor.dim() == 0
