"""Whether an attempt answered: without answers a check does not pass.

Some checks ask for what an attempt without any answer also does: leave an argument unchanged, or refuse an input. So
every function and class that the check called must have returned what the reference returns, a tensor or a number, at
least once, and never anything else. A refusal counts only if an allowed input was answered too. Where a check breaks on strange
answers, these are to blame.

A check of form (dtype, device, unchanged arguments) sees no numbers, so zeros would pass it. A function says nothing if
all its answers are one number throughout, NaN, or numbers that it was given; or if they stay the same, or differ by chance
alone, where it is given other numbers. Whoever answers once as the reference does says something, and is asked no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

import torch
from torch import Tensor

from ..box.worker.answers import Output, Reply
from ..box.worker.form import OPAQUE
from ..box.worker.messages import Build, Call, StandIn
from ..checks.answer import Answer, answers_of
from ..checks.asserts import NONE, TOLERANCE, assert_finite, assert_shape, difference, label
from ..checks.implementation import Runner
from ..checks.outcome import AttemptRaised, CheckFailed, CheckOutcome
from ..checks.sanitize import kind_name
from ..checks.transcript import Exchange, Question, RecordingRunner, target_of

MUCH = 1e-2  # of the reference's largest number: by so much its answers to two inputs differ, if they are to tell
RIGHT = 1e-4  # of it: chance comes no nearer
LIKE = 0.25  # the least correlation with the right answer; that of noise is rarely 0.2
FEW = 10  # numbers: of so few, chance may bring some near each other
CHANCE, CHANCE_OF_FEW = 2.0, 10.0  # times: by so much more than chance must the input change an answer; noise has 0.7
HUGE, INFINITE = 1e6, 1e3  # from HUGE on a number is as good as infinite
MOVED = "moved"  # numbers of an argument in other places: the work of some functions
CONSTANT, UNCHANGED = "constant", "unchanged"
SINGLE = "single"  # one number in a tensor, which is constant and a part of much
TELLING = ("", MOVED)
TRIED = 3  # inputs, until other numbers change the reference's answer
SMALLER = 0.75  # other numbers are the same ones, moved and so much smaller: they stay within what a check draws


class AsksNothingError(Exception):
    """A check that an attempt cannot fail by not answering. That is a fault of the check."""


@dataclass(frozen=True)
class Withdrawn(CheckOutcome):
    """The outcome of a check that passed, and does not count. place: the function whose answer is why."""

    place: str = ""


Kinds = tuple[frozenset[str], ...]  # what a function returns ("tensor", "float"), for each leaf of what it returns
Why = tuple[CheckFailed | AsksNothingError, str]  # and the function whose answer it is


def unanswered(exchanges: Sequence[Exchange], reference: Runner) -> Why | None:
    """Return why a check with these exchanges that passed does not count, and whose answer it is; None if it counts."""
    if not exchanges:
        return AsksNothingError("it asks the attempt nothing"), ""
    kinds: dict[str, Kinds] = {}
    answered = {target_of(exchange.call) for exchange in exchanges if exchange.reply.outputs}
    for target in dict.fromkeys(target_of(exchange.call) for exchange in exchanges):
        due = kinds_of((e.call for e in exchanges if target_of(e.call) == target), reference)
        if due is None and target not in answered:  # else the attempt's own sizes made the call one that is refused
            fault = f"it asks {target} for nothing that the reference answers: let it ask an allowed input, too"
            return AsksNothingError(fault), target
        kinds[target] = due or ()

    def silence(exchange: Exchange) -> CheckFailed | None:
        if target_of(exchange.call) in answered:
            return None
        raised = exchange.reply.raised
        return CheckFailed("a module is built, and never answers") if raised is None else AttemptRaised(raised)

    for find in (lambda e: _of_another_kind(e, kinds[target_of(e.call)]), silence, lambda e: _not_finite(e, reference)):
        for exchange in exchanges:
            if failed := find(exchange):
                return failed, target_of(exchange.call)
    return None


def kinds_of(calls: Iterable[Call], reference: Runner) -> Kinds | None:
    """Return what the reference returns to these calls of one function; None where it returns nothing to any.

    A part may be None in one call and a tensor in another; of a function with one output the first one says it.
    """
    found: list[set[str]] = []
    for call in calls:
        outputs = reference.execute(call).outputs
        if not outputs:  # a call that only builds has no form of several parts
            continue
        if call.form.is_leaf:
            return (frozenset({outputs[0].kind}),)
        found = found or [set() for _ in range(call.form.count)]
        for kinds, output in zip(cycle(found), outputs, strict=False):
            kinds.add(output.kind)
    return tuple(map(frozenset, found)) if any(found) else None


def _of_another_kind(exchange: Exchange, wanted: Kinds) -> CheckFailed | None:
    call, outputs = exchange.call, exchange.reply.outputs
    try:
        if outputs:
            Answer(call, exchange.reply).must_return()
    except CheckFailed as failed:
        return failed
    is_part = not call.form.is_leaf
    for out, due, answer in zip(outputs, cycle(wanted), answers_of(call, exchange.reply), strict=False):
        is_due = out.kind in due and (is_part or out.kind in ("tensor", OPAQUE))  # a part may be None, or opaque
        is_number = out.tensor is not None and out.tensor.dim() == 0
        if not is_due and (due <= {"tensor", NONE, OPAQUE} or not is_number):
            name = "None" if due == {NONE} else kind_name(min(due - {NONE}))
            where = f" as {answer.label}" if answer.path or call.then else ""
            return CheckFailed(f"{name} was expected{where}; yours returned {kind_name(out.kind)}")
    return None


def _parts(call: Call, mine: Reply, right: Reply) -> Iterator[tuple[Output, Output, str]]:
    for got, wanted, answer in zip(mine.outputs, right.outputs, answers_of(call, mine), strict=False):
        yield got, wanted, answer.label


def _not_finite(exchange: Exchange, reference: Runner) -> CheckFailed | None:
    """Say where an answer is NaN, or infinite, and nothing in the reference's is so. In training chance may bring it about."""
    call, reply = exchange.call, exchange.reply
    in_training = isinstance(call.subject, Build) and call.subject.training
    if in_training or all(out.tensor is None or bool(out.tensor.isfinite().all()) for out in reply.outputs):
        return None
    for mine, right, name in _parts(call, reply, reference.execute(call)):
        if mine.tensor is None or right.tensor is None or bool(right.tensor.isnan().any()):
            continue
        # Where the reference masks with infinities, an attempt may mask elsewhere, or may mask what others call False.
        masks = not right.tensor.is_floating_point() or not bool(right.tensor.isfinite().all())
        try:
            assert_finite(mine.tensor.masked_fill(mine.tensor.isinf(), 0.0) if masks else mine.tensor, name)
        except CheckFailed as failed:
            return failed
    return None


def compare_with_reference(exchanges: Sequence[Exchange], reference: Runner) -> CheckFailed | None:
    """Return the first answer that differs from the reference's in shape or type, as a check would report it; None if all agree.

    A check that fails on one (an index beyond an axis, arithmetic on bools) is not broken: a wrong attempt may return anything.
    """
    for exchange in exchanges:
        try:
            _compare(exchange.call, exchange.reply, reference.execute(exchange.call))
        except CheckFailed as failed:
            return failed
        except Exception:  # a call that only an attempt can answer cannot be compared
            continue
    return None


def _compare(call: Call, mine: Reply, right: Reply) -> None:
    if right.raised is not None:
        return
    Answer(call, mine).must_return()
    for got, wanted, name in _parts(call, mine, right):
        if got.kind != wanted.kind:
            raise CheckFailed(f"{kind_name(wanted.kind)} was expected; yours returned {kind_name(got.kind)}")
        if got.tensor is None or wanted.tensor is None:
            continue
        assert_shape(got.tensor, wanted.tensor.shape, name)
        if got.tensor.is_floating_point() != wanted.tensor.is_floating_point():
            expected, yours = (str(t.dtype).removeprefix("torch.") for t in (wanted.tensor, got.tensor))
            raise CheckFailed(f"a tensor of {expected} was expected; yours is of {yours}")
    for name, gradient in right.gradients.items():
        if gradient is not None and (other := mine.gradients.get(name)) is not None:
            assert_shape(other, gradient.shape, "a gradient")


def says_nothing(targets: Sequence[str], attempt: RecordingRunner, reference: Runner) -> Mapping[str, str]:
    """Return what is to be said of those of these functions that say nothing.

    What the attempt is asked in addition does not stand in its transcript.
    """
    told: dict[str, str] = {}
    contrasts: list[_Contrast] = []
    for target in targets:
        asked = [exchange for exchange in attempt.transcript if target_of(exchange.call) == target]
        if _is_right_once(_known(asked, reference)):
            continue
        said = [(each, says) for each in _known(asked, reference) if (says := each.emptiness()) is not None]
        telling = [each for each, says in said if not says]
        if said and not telling:
            told[target] = f"{target} {said[0][1]}"
        elif telling and max(telling, key=lambda each: _numbers(each.exchange.reply).numel()).is_unrelated():
            told[target] = f"what {target} gives has nothing to do with what it is given"
        elif contrast := _contrast(target, [each.exchange.call for each in telling], reference):
            contrasts.append(contrast)
    before = len(attempt.transcript)
    questions = [Question("", call) for contrast in contrasts for call in contrast.calls]
    replies = iter(attempt.execute_all(questions) if questions else ())
    del attempt.transcript[before:]
    for contrast in contrasts:
        if verdict := contrast.verdict([next(replies) for _ in contrast.calls]):
            told[contrast.target] = f"{contrast.target} gives {verdict}, whatever it is given"
    return told


@dataclass(frozen=True)
class _Known:
    """An exchange, and the reference's reply to it: both answer with numbers."""

    exchange: Exchange
    right: Reply

    def parts(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the parts of the attempt's answer that are tensors, each with the reference's."""
        for mine, wanted, _ in _parts(self.exchange.call, self.exchange.reply, self.right):
            if mine.tensor is not None and wanted.tensor is not None:
                yield mine.tensor, wanted.tensor

    def emptiness(self) -> str | None:
        """Say why no part of the answer says anything: "" where one does, None where the reference's says no more."""
        call, found = self.exchange.call, []
        for mine, wanted in self.parts():
            kind, says = _emptiness(mine, call)
            if kind != _emptiness(wanted, call)[0]:
                may_vary = kind == CONSTANT and _has_numbers(call)  # from input to input: that is asked
                found.append("" if may_vary else says)
            elif kind in TELLING:
                found.append("")
        return None if not found else found[0] if all(found) else ""

    def is_unrelated(self) -> bool:
        """Return whether an answer that goes by sizes alone has no likeness to the right one, not even to its opposite."""
        mine, wanted = _numbers(self.exchange.reply, INFINITE), _numbers(self.right)
        if _has_numbers(self.exchange.call) or mine.shape != wanted.shape or mine.numel() < FEW:
            return False
        return abs(float(torch.corrcoef(torch.stack([mine, wanted]))[0, 1].nan_to_num())) < LIKE


def _known(exchanges: Iterable[Exchange], reference: Runner) -> Iterator[_Known]:
    for exchange in exchanges:
        if _has_tensors(exchange.reply) and _has_tensors(right := reference.execute(exchange.call)):
            yield _Known(exchange, right)


def _has_tensors(reply: Reply) -> bool:
    return reply.raised is None and any(out.tensor is not None for out in reply.outputs)


def _is_right_once(known: Iterable[_Known]) -> bool:
    """Return whether a part of an answer is the reference's, and neither chance nor a copy gives it.

    A single number may be right by chance: two different ones are not.
    """
    single: list[float] = []
    for call, mine, wanted in ((each.exchange.call, *parts) for each in known for parts in each.parts()):
        is_right = mine.shape == wanted.shape and difference(mine, wanted) <= RIGHT
        if is_right and _emptiness(wanted, call)[0] in TELLING:
            if wanted.numel() > 1:
                return True
            single.append(float(wanted))
    return bool(single) and max(single) - min(single) > MUCH * max(map(abs, single))


@dataclass(frozen=True)
class _Contrast:
    """Two calls of a function, each twice, to which the reference answers differently. largest: of its answer's numbers."""

    target: str
    calls: Sequence[Call]
    largest: float

    def verdict(self, replies: Sequence[object]) -> str:
        """Say what is given to every call; "" where the function says something, or that cannot be seen."""
        found = [_numbers(reply) for reply in replies if isinstance(reply, Reply) and reply.raised is None]
        if len(found) < len(replies) or len({each.shape for each in found}) > 1 or not found[0].numel():
            return ""
        one, other, again, once_more = found
        by_chance = float((one - again).norm() + (other - once_more).norm())
        by_input = float((one + again - other - once_more).norm())
        if max(by_chance, by_input) <= TOLERANCE * max(self.largest, float(one.abs().max())):
            is_one = one.numel() > 1 and bool((one == one[0]).all())
            return f"{float(one[0]):.4g} in every place" if is_one else "the same answer"
        is_chance = by_input <= by_chance * (CHANCE if one.numel() >= FEW else CHANCE_OF_FEW)
        return "another answer each time" if is_chance else ""


def _contrast(target: str, calls: Sequence[Call], reference: Runner) -> _Contrast | None:
    plain = [
        replace(call, cotangent=None, second=False, watch=False, memory=False, most_operations=None, runs=1)
        for call in calls
    ]
    for call in plain[:TRIED]:
        changed = _with_other_numbers(call)
        for other in [each for each in plain if each is not call] if changed is None else [changed]:
            one, two = (_numbers(reference.execute(each)) for each in (call, other))
            if one.shape == two.shape and difference(two, one) > MUCH:
                return _Contrast(target, (call, other, call, other), float(one.abs().max()))
    return None


def _emptiness(answer: Tensor, call: Call) -> tuple[str, str]:
    """In which way a tensor says nothing of its call, and what is to be said of it; "" where it may say something."""
    numbers = answer.detach().double()
    if not bool(numbers.isfinite().any()):
        return "infinite", "gives NaN" if bool(numbers.isnan().any()) else "gives no finite number"
    if numbers.numel() == 1:
        return SINGLE if numbers.dim() else "", ""
    first = numbers.flatten()[0]
    is_one = bool((numbers == first).all())
    for name, given in call.arguments.items():
        if isinstance(given, Tensor) and given.is_floating_point() and not given.is_meta:
            single = given.float()  # the attempt may have been asked in it
            if given.shape == numbers.shape and torch.equal(single, numbers.float()):
                return UNCHANGED, f"gives back {label(name)}, unchanged"
            if bool((single == first.float()).any()) and _are_of(numbers.float(), single):
                said = f"gives back numbers of {label(name)}, and has computed nothing"
                return UNCHANGED if is_one else MOVED, said
    if is_one:
        return CONSTANT, f"gives {float(first):.4g} in every place"
    if numbers.dim() > 1 and torch.equal(numbers, torch.eye(*numbers.shape[-2:]).double().expand(numbers.shape)):
        return CONSTANT, "gives 1 on the diagonal and 0 elsewhere"
    return "", ""


def _are_of(numbers: Tensor, given: Tensor) -> bool:  # in another order, or some of them, each perhaps several times
    if numbers.numel() == given.numel():
        return torch.equal(numbers.flatten().sort().values, given.flatten().sort().values)
    return bool(torch.isin(numbers, given).all())


def _has_numbers(call: Call) -> bool:
    return _with_other_numbers(call) is not None


def _with_other_numbers(call: Call) -> Call | None:
    """Return the same call with other numbers, the same ones moved and smaller; None where no floating-point tensor is given."""
    generator, found = torch.Generator().manual_seed(0), list[Tensor]()

    def changed(value: Any) -> Any:
        match value:
            case Tensor() if value.is_floating_point() and not value.is_meta:
                found.append(value)
                return value.flatten()[torch.randperm(value.numel(), generator=generator)].view(value.shape) * SMALLER
            case Build():
                return replace(value, state=value.state and in_all(value.state), added=in_all(value.added))
            case StandIn():
                return replace(value, linears=in_all(value.linears))
        return value

    def in_all(values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: changed(each) for name, each in values.items()}

    other = call.map(changed)
    return other if found else None


def _numbers(reply: Reply, infinite: float = 0.0) -> Tensor:
    """Return all numbers of an answer in one row. infinite: what stands for those that hide a score, whose size says nothing."""
    found = [torch.empty(0)]
    for out in reply.outputs:
        if out.tensor is not None:
            row = out.tensor.detach().double().flatten()
            hides = out.tensor.dim() > 0 and out.tensor.is_floating_point()
            found.append(torch.where(row.abs() < HUGE, row, infinite) if hides else row)
    return torch.cat(found)
