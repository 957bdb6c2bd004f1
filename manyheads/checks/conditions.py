"""Conditions: what a function must do before its checks of form count.

A check of form (dtype, device, unchanged arguments) sees no numbers, so an answer that ignores half
of its input would pass it. A file of checks states in `PRECONDITIONS` what a function must do
beside: for each function a generator that makes calls and yields a `Condition` for each. A
condition is data: a call, and a rule by which the answer is held against the reference's. So
`course grade` can put it on hidden inputs, and `course check` on recorded ones, without any code of
a check.

The rules look at the first axis of the answer, along which a call puts variants of one input.

interaction: groups of four variants a, b, c, d. What a − b − c + d leaves is what two changes of
    the input do together, and neither alone.
weighing: groups of six variants, three before and three after two keys have changed places. In the
    first of each three, all values are as they were. In the second, the value of one key is raised,
    and in the third that of the other key. How far the answer moves is in proportion to the share
    of that key. If the scores decide nothing, the two shares have the same ratio before and after,
    so (first before · second after − second before · first after) is 0.
limit: groups of four variants with the factors 1, 2, 5 and 10 of what decides the shares. Shares
    that grow up to a limit and then add up to more than one unit are not shared out: each is
    decided alone, as a sigmoid does.

The first group is the one that the reference answers. Others are the same with the input's parts in
other roles, so that a mistake in the roles alone is not taken for an answer that weighs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from .answer import Answer
from .hidden_check import CheckFailed

Rule = Literal["interaction", "weighing", "limit"]
LIMIT_FACTORS = (1.0, 2.0, 5.0, 10.0)
VARIANTS: Mapping[Rule, int] = {"interaction": 4, "weighing": 6, "limit": 4}  # in each group
# of what the reference leaves: inputs in float32 leave less, and a wrong scale or axis leaves more
LEAST = 1e-5
NOTHING = 1e-9  # what rounding leaves: here the reference itself does not tell
# the largest angle, in radians, between two answers that differ in size alone
SAME_DIRECTION = 1e-3
GROWS = 0.05  # of the answer: by more it changes from the first factor to the second
SETTLED = 1e-3  # of the answer: by less it changes from the third factor to the fourth
MORE_THAN_ONE_UNIT = 1.5  # times the reference's answer


@dataclass(frozen=True)
class LeftOut:
    """What an interaction is not looked for in: what the call changes itself. Positions of the last
    two axes.
    """

    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()


NOTHING_LEFT_OUT = LeftOut()


@dataclass(frozen=True)
class Condition:
    """One call that a condition makes, and the rule that its answer must meet.

    message: what a student reads if the rule is not met. least: the smallest interaction, as a part
        of the reference's.
    """

    rule: Rule
    answer: Answer
    message: str
    left_out: LeftOut = NOTHING_LEFT_OUT
    least: float = LEAST


@dataclass(frozen=True)
class Judged:
    """A condition's answer as numbers, beside the reference's."""

    rule: Rule
    actual: Tensor
    expected: Tensor
    message: str
    left_out: LeftOut = NOTHING_LEFT_OUT
    least: float = LEAST


def first_unmet(conditions: Iterable[Judged]) -> str:
    """Return the message of the first condition that is not met, "" if all are.

    Of several that ask whether anything is left one is enough: each is asked at another magnitude,
    or on another path.
    """
    judged = list(conditions)
    asking = [condition for condition in judged if condition.rule != "limit"]
    if asking and not any(map(leaves_enough, asking)):
        return asking[0].message
    limits = (c for c in judged if c.rule == "limit" and exceeds_one_unit(c))
    return next((c.message for c in limits), "")


def judged_beside(condition: Condition, reference: Answer) -> Judged:
    """Return a condition's numbers beside those of the reference's answer to the same call.

    Raises CheckFailed if there are none, or none for each variant: then no rule can be held against
    them.
    """
    return judged_beside_numbers(condition, _numbers(reference))


def judged_beside_numbers(condition: Condition, expected: Tensor) -> Judged:
    """As `judged_beside`, where the reference's numbers are known."""
    actual = _numbers(condition.answer)
    if actual.dim() == 0 or len(actual) != len(expected) or not actual.numel():
        raise CheckFailed(
            f"the output should have shape {tuple(expected.shape)}; yours has {tuple(actual.shape)}"
        )
    return Judged(
        condition.rule, actual, expected, condition.message, condition.left_out, condition.least
    )


def _numbers(answer: Answer) -> Tensor:
    answer.must_return()
    return next(answer.leaves()).output


def leaves_enough(condition: Judged) -> bool:
    """Return whether the changes of the input do something together, in one of the roles.

    True also for an answer without any finite number. Such an answer shows nothing here, and other
    checks ask for finite numbers.
    """
    left_out = (
        condition.left_out
        if condition.actual.shape == condition.expected.shape
        else NOTHING_LEFT_OUT
    )
    actual = what_is_left(condition.rule, condition.actual, left_out)
    expected = what_is_left(condition.rule, condition.expected, NOTHING_LEFT_OUT)
    finite = actual.isfinite()
    if not bool(finite.any()):
        return True
    if not float(expected[0]) > NOTHING:
        return False
    return float(actual[finite].max()) > condition.least * float(expected[0])


def what_is_left(rule: Rule, answer: Tensor, left_out: LeftOut) -> Tensor:
    """Return (groups,): how large it is, of each group."""
    variants = answer.unflatten(0, (-1, VARIANTS[rule])).unbind(1)
    effect = _weighing(*variants) if rule == "weighing" else _interaction(*variants)
    if left_out.rows:
        effect[..., list(left_out.rows), :] = 0.0
    if left_out.columns:
        effect[..., list(left_out.columns)] = 0.0
    sizes: Tensor = effect.flatten(1).square().sum(1).sqrt()
    return sizes


def _interaction(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    return a - b - c + d


def _weighing(
    plain: Tensor, first: Tensor, second: Tensor, plain_2: Tensor, first_2: Tensor, second_2: Tensor
) -> Tensor:
    return (first - plain) * (second_2 - plain_2) - (second - plain) * (first_2 - plain_2)


def exceeds_one_unit(condition: Judged) -> bool:
    """Return whether shares grow with the factor, up to a limit at which they add up to more than
    one unit.
    """
    small, twice, large, larger = (
        variant.flatten(1)
        for variant in condition.actual.unflatten(0, (-1, VARIANTS["limit"])).unbind(1)
    )
    expected = condition.expected.unflatten(0, (-1, VARIANTS["limit"]))[:, 2].flatten(1)
    size = small.norm(dim=1)
    same_direction = (small * twice).sum(1).abs() >= (1 - SAME_DIRECTION**2) * size * twice.norm(
        dim=1
    )
    grows = (twice - small).norm(dim=1) > GROWS * size
    settles = (larger - large).norm(dim=1) <= SETTLED * large.norm(dim=1)
    is_more = large.norm(dim=1) > MORE_THAN_ONE_UNIT * expected.norm(dim=1)
    return bool((same_direction & grows & settles & is_more).any())


Conditions = Mapping[str, Callable[..., Iterable[Condition]]]  # by function
