"""Whether an attempt is right if its arguments are passed by name. Then only their order is wrong."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..box.connection import AttemptEnded
from ..box.worker.answers import Reply
from ..box.worker.messages import Build, Call
from ..checks.implementation import LocalRunner, Runner
from ..checks.recording import BatchRunner, Exchange, Question, replies_of
from .agree import agree

ASKED = 3  # how many exchanges are tried: the order of arguments is the same in all


@dataclass(frozen=True)
class ByName:
    """A runner that passes all arguments by name, so that the order of the attempt's parameters does not matter."""

    subject: BatchRunner
    namespace: Mapping[str, object]

    @property
    def device(self) -> str:
        """The device of the attempt's computations."""
        return self.subject.device

    def execute(self, call: Call) -> Reply:
        """The reply to the call by name, without gradients, which are reported by position."""
        return self.subject.execute(self._named(call))

    def execute_all(self, questions: Sequence[Question]) -> list[Reply | AttemptEnded]:
        """The replies to these calls by name."""
        return self.subject.execute_all([Question(q.check, self._named(q.call)) for q in questions])

    def _named(self, call: Call) -> Call:
        plain = dataclasses.replace(call, cotangent=None, second=False)
        return by_name(plain, self.namespace) or plain

    def asked_again(self, exchanges: Sequence[Exchange]) -> list[Exchange]:
        """The exchanges, with the attempt's replies by name."""
        calls = [dataclasses.replace(e.call, cotangent=None, second=False) for e in exchanges]
        return [
            dataclasses.replace(e, call=call, reply=reply)
            for e, call, reply in zip(exchanges, calls, replies_of(self, calls), strict=True)
        ]


def takes_another_order(subject: Runner, reference: LocalRunner, exchanges: Sequence[Exchange]) -> bool:
    """Whether calls that are wrong by position are right by name. Raises AttemptEnded if one ends the attempt's process."""
    asked = 0
    for exchange in exchanges:
        right = reference.execute(exchange.call)
        if agree(exchange.reply, right):
            continue
        named = by_name(exchange.call, reference.namespace)
        if named is None:
            continue
        if not agree(subject.execute(named), right):
            return False
        asked += 1
        if asked == ASKED:
            break
    return asked > 0


def by_name(call: Call, namespace: Mapping[str, object]) -> Call | None:
    """The call with its positional arguments by the reference's parameter names; None if that changes nothing."""
    build = call.subject if isinstance(call.subject, Build) else None
    target = namespace.get(call.subject.target if isinstance(call.subject, Build) else call.subject)
    built = {} if build is None else _names(target, build.args)
    if build is not None and built:
        named = dataclasses.replace(build, args=(), kwargs={**built, **build.kwargs})
        call = dataclasses.replace(call, subject=named)
    if call.cotangent is not None:  # gradients are reported by position
        return call if built else None
    called = target if build is None else getattr(target, "forward", None)
    names = [_names(called, step.args, bound=build is None) for step in call.steps]
    named_by_step = zip(names, call.steps, strict=True)
    steps = (dataclasses.replace(s, args=(), kwargs={**n, **s.kwargs}) if n else s for n, s in named_by_step)
    return call.with_steps(tuple(steps)) if built or any(names) else None


def _names(target: object, args: Sequence[object], *, bound: bool = True) -> dict[str, object]:
    """Positional arguments by name; empty for fewer than two, because a single argument has no order.

    bound: whether the target takes no `self`.
    """
    if not callable(target) or len(args) < 2:
        return {}
    names = list(inspect.signature(target).parameters)[not bound :]
    return dict(zip(names, args, strict=False)) if len(args) <= len(names) else {}
