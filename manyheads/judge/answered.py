"""Whether a check that passed was answered: a check passes only on answers that came.

A check may ask for something that an attempt without any answer has, too: an argument that is as it was, or a refusal.
So every function and class that the check asked must have given what the reference gives, a tensor or a number, at
least once, and never anything else. Then a refusal counts only beside an allowed input that is answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..box.worker.answers import Output
from ..box.worker.messages import Build, Call
from ..checks.implementation import AttemptRaised, CheckFailed
from ..checks.recording import Exchange
from ..checks.sanitize import kind_name


def target_of(call: Call) -> str:
    """The name of the function that is called, or of the class that is built."""
    return call.subject.target if isinstance(call.subject, Build) else call.subject


class AsksNothingError(Exception):
    """A check that nobody could fail by not answering: a fault of its author's."""


def unanswered(exchanges: Sequence[Exchange], kinds: Mapping[str, str]) -> CheckFailed | AsksNothingError | None:
    """Why a check that passed does not count; None where it does.

    Args:
        exchanges: what this check asked, and the replies.
        kinds: what the reference returns, by the name of the function or class: "tensor", "float".
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
    came = {target_of(exchange.call) for exchange in exchanges if exchange.reply.outputs}
    for exchange in exchanges:
        if target_of(exchange.call) not in came:
            raised = exchange.reply.raised
            return CheckFailed("a module is built, and never answers") if raised is None else AttemptRaised(raised)
    return None


def _is_answer(out: Output, wanted: str) -> bool:
    """Whether this is a tensor where one is due, or a number where one is due."""
    if wanted == "tensor":
        return out.kind == "tensor"
    return out.tensor is not None and out.tensor.dim() == 0
