"""Explain an attempt in other ways than call by call: function by function, in the order of its calls, with arguments by name."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from ..box.connection import AttemptEnded
from ..box.worker.answers import Reply
from ..box.worker.messages import Build, Call
from ..checks.implementation import LocalRunner, Runner
from ..checks.local import LocalRecordingRunner, as_an_attempts
from ..checks.transcript import BatchRunner, Exchange, Question, replies_of, target_of
from .agree import agree, is_comparable
from .bank import Bank, Mutant
from .diagnosis import Faults, fault_of, function_by_function
from .search import Mutants, Part, explain_values, refuses_in_its_own_way

# Mutants whose answers depend on more than the call, replayed from new: every call of an attempt, in its order.
#
# A cache in a default argument remembers earlier calls, and a layer that is not registered keeps its own weights and
# its own dtype. What such a mutant answers to one call says nothing of another run, so that neither table nor search
# can tell what is wrong beside it. Asked all that the attempt was asked, one call after the other, the same code gives
# the same answers.

MOST_BASES = 4  # mutants of the proved misconceptions that are tried with every other one
TRIED_CALLS = 6  # with which it is seen whether a mutant's answers depend on more than the call


def explain_in_order(bank: Bank, proven: Collection[str], reference: Runner, transcript: Sequence[Exchange]) -> Faults:
    """Return a mutant of a misconception that a check proves, alone or with another, that answers all calls as the attempt did.

    None if there is none, or if all such mutants can be replayed call by call.
    """
    compared = {
        i
        for i, each in enumerate(transcript)
        if is_comparable(each.call) and not refuses_in_its_own_way(each, reference)
    }
    if not any(transcript[i].reply.outputs for i in compared):
        return None
    tried = [transcript[i] for i in sorted(compared)[:TRIED_CALLS]]
    bases = [m for m in bank.mutants if m.id in proven and _needs_its_order(bank, m, tried)][:MOST_BASES]
    for mutants in chain(((base,) for base in bases), _pairs(bank, bases)):
        namespace = bank.anew(*mutants)
        if namespace is not None and _answers_alike(LocalRecordingRunner(namespace), transcript, compared):
            return tuple(map(fault_of, mutants))
    return None


def _pairs(bank: Bank, bases: Sequence[Mutant]) -> Iterator[tuple[Mutant, ...]]:
    return ((base, other) for base in bases for other in bank.mutants if other.id != base.id)


def _needs_its_order(bank: Bank, mutant: Mutant, tried: Sequence[Exchange]) -> bool:
    """Return whether a call is answered otherwise when it is asked again, or in float32 alone."""
    runner = LocalRunner(bank.anew(mutant) or {})
    for each in tried:
        first = runner.execute(each.call)
        if as_an_attempts(runner, each.call, first) is not first or not agree(first, runner.execute(each.call)):
            return True
    return False


def _answers_alike(runner: LocalRecordingRunner, transcript: Sequence[Exchange], compared: Collection[int]) -> bool:
    """Return whether trusted code, asked everything in the same order, answers these calls as the attempt did."""
    for i, exchange in enumerate(transcript):
        reply = runner.execute(exchange.call)
        if i in compared and not agree(exchange.reply, reply):
            return False
    return True


# Which misconceptions explain one function's answers, where nothing explains those of all functions together.
#
# An attempt is unfinished most of its life: beside a function with a mistake stands one that is not written yet, or
# one with another mistake. What is written is explained whatever its neighbours are.

PAIRS = 0  # a function's calls are too few to tell two faults together from one that nobody has listed


def explain_functions(mutants: Mutants, exchanges: Sequence[Exchange]) -> Faults:
    """Return the faults of each function whose answers are explained on every call of it; None if there is no such function.

    What explains a function must not contradict an earlier one, which it may call: there it changes nothing, or
    answers as the attempt does. For several functions only: where there is one, its answers are all answers. Raises
    AttemptEnded if a probe ends the attempt's process.
    """
    reference, asked = mutants.reference, {target_of(e.call) for e in exchanges}

    def explain(function: str, before: Sequence[str]) -> Faults:
        own = [e for e in exchanges if target_of(e.call) == function]
        if not any(map(_is_answered, own)) or all(agree(e.reply, reference.execute(e.call)) for e in own):
            return ()
        earlier = tuple(e for e in exchanges if target_of(e.call) in before and _is_answered(e))
        return explain_values(mutants, own, PAIRS, Part(function, earlier))

    return function_by_function([name for name in reference.namespace if name in asked], explain) or None


def _is_answered(exchange: Exchange) -> bool:
    """Return whether a tensor came. Without any, a function has no values that could be explained."""
    return any(out.tensor is not None for out in exchange.reply.outputs)


# Whether an attempt is right if its arguments are passed by name. Then only their order is wrong.

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
        """Return the reply to the call by name, without gradients, which are reported by position."""
        return self.subject.execute(self._named(call))

    def execute_all(self, questions: Sequence[Question]) -> list[Reply | AttemptEnded]:
        """Return the replies to these calls by name."""
        return self.subject.execute_all([Question(q.check, self._named(q.call)) for q in questions])

    def _named(self, call: Call) -> Call:
        plain = dataclasses.replace(call, cotangent=None, second=False)
        return by_name(plain, self.namespace) or plain

    def asked_again(self, exchanges: Sequence[Exchange]) -> list[Exchange]:
        """Return the exchanges, with the attempt's replies by name."""
        calls = [dataclasses.replace(e.call, cotangent=None, second=False) for e in exchanges]
        return [
            dataclasses.replace(e, call=call, reply=reply)
            for e, call, reply in zip(exchanges, calls, replies_of(self, calls), strict=True)
        ]


def takes_another_order(subject: Runner, reference: LocalRunner, exchanges: Sequence[Exchange]) -> bool:
    """Return whether calls that are wrong by position are right by name. Raises AttemptEnded if one ends the attempt's process."""
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
    """Return the call with its positional arguments by the reference's parameter names; None if that changes nothing."""
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
