"""Conditions: requirements that a function must meet before its checks of form count.

A check of form (dtype, device, unchanged arguments) does not look at numbers, so an answer that
ignores half of its input would pass. A file of checks therefore states further requirements in
`PRECONDITIONS`: for each function, a generator that makes calls and yields a `Condition` for each.
A condition is data: a call, and a rule that compares the answer with the reference's. So
`course grade` can use it with hidden inputs, and `course check` with recorded ones, without any
code of a check.

The rules look at the first axis of the answer. Along this axis a call has variants of one input.

interaction: groups of four variants a, b, c, d. a − b − c + d is the joint effect of two changes of
    the input, without the effects of each change alone.
weighing: groups of six variants, three before and three after two keys have been swapped. In the
    first of each three, all values are unchanged. In the second, the value of one key is raised,
    and in the third, the value of the other key. The answer then moves in proportion to the share
    of that key. If the scores have no influence, the ratio of the two shares is the same before and
    after, so (first before · second after − second before · first after) is 0.
limit: groups of four variants, in which the input that decides the shares is multiplied by 1, 2, 5
    and 10. If the shares grow up to a limit and then add up to more than one unit, each share is
    computed without regard to the others, as by a sigmoid.

The reference answers the first group. In the other groups the parts of the input have other roles.
So an answer that only confuses the roles is not mistaken for one that weighs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from .answer import Answer
from .hidden_check import CheckFailed, Evidence

Rule = Literal["interaction", "weighing", "limit"]
LIMIT_FACTORS = (1.0, 2.0, 5.0, 10.0)
VARIANTS: Mapping[Rule, int] = {"interaction": 4, "weighing": 6, "limit": 4}  # in each group
# The smallest effect, as a fraction of the reference's effect. Rounding of inputs to float32 causes
# less, and a wrong scale or axis causes more.
LEAST = 1e-5
NOTHING = 1e-9  # the effect of rounding; if the reference's effect is smaller, the rule is not met
# the largest angle, in radians, between two answers that differ only in size
SAME_DIRECTION = 1e-3
GROWS = 0.05  # the answer changes by more than this fraction from the first factor to the second
SETTLED = 1e-3  # the answer changes by less than this fraction from the third factor to the fourth
MORE_THAN_ONE_UNIT = 1.5  # times the reference's answer


@dataclass(frozen=True)
class LeftOut:
    """Indices of the last two axes in which an interaction does not count.

    The call itself changes the answer there.
    """

    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()


NOTHING_LEFT_OUT = LeftOut()


@dataclass(frozen=True)
class Condition:
    """One call that a condition makes, and the rule that its answer must meet."""

    rule: Rule
    answer: Answer
    message: str  # for the student, if the rule is not met
    left_out: LeftOut = NOTHING_LEFT_OUT
    least: float = LEAST  # the smallest effect, as a fraction of the reference's effect


@dataclass(frozen=True)
class Judged:
    """The numbers of a condition's answer, and those of the reference's answer."""

    rule: Rule
    actual: Tensor
    expected: Tensor
    message: str
    left_out: LeftOut = NOTHING_LEFT_OUT
    least: float = LEAST


def first_failed_condition(conditions: Iterable[Judged]) -> str:
    """Return the message of a condition that is not met, or "" if the function meets them.

    One met condition with the rule "interaction" or "weighing" is enough, because each of these
    tries another magnitude of the input, or another path. If all of these fail, the first one has
    the message. Otherwise, each condition with the rule "limit" must be met, and the first one that
    fails has the message.
    """
    judged = list(conditions)
    asking = [condition for condition in judged if condition.rule != "limit"]
    if asking and not any(map(leaves_enough, asking)):
        return asking[0].message
    limits = (c for c in judged if c.rule == "limit" and exceeds_one_unit(c))
    return next((c.message for c in limits), "")


def judged_beside(condition: Condition, reference: Answer) -> Judged:
    """Return the condition's numbers together with those of the reference for the same call.

    Raises CheckFailed if there are no numbers, or if their first axis has another length than the
    reference's: then no rule can be applied.
    """
    return judged_beside_numbers(condition, _numbers(reference))


def judged_beside_numbers(condition: Condition, expected: Tensor) -> Judged:
    """Return the condition's numbers together with the known numbers of the reference.

    Raises CheckFailed as `judged_beside` does.
    """
    actual = _numbers(condition.answer)
    if actual.dim() == 0 or len(actual) != len(expected) or not actual.numel():
        evidence = Evidence(
            "the output should have shape {}; yours has {}", expected.shape, actual.shape
        )
        raise CheckFailed(evidence)
    return Judged(
        condition.rule, actual, expected, condition.message, condition.left_out, condition.least
    )


def _numbers(answer: Answer) -> Tensor:
    """Return the first leaf of an answer. Raises CheckFailed if it has no numbers."""
    answer.must_return()
    return next(answer.leaves()).output


def leaves_enough(condition: Judged) -> bool:
    """Return whether the effect of the rule is large enough in one of the groups.

    It must be larger than `condition.least` times the reference's effect in the first group. If the
    reference has no effect there, the result is False. For an answer without any finite number, the
    result is True, because other checks require finite numbers.
    """
    left_out = (
        condition.left_out
        if condition.actual.shape == condition.expected.shape
        else NOTHING_LEFT_OUT
    )
    actual = remaining_score(condition.rule, condition.actual, left_out)
    expected = remaining_score(condition.rule, condition.expected, NOTHING_LEFT_OUT)
    finite = actual.isfinite()
    if not bool(finite.any()):
        return True
    if not float(expected[0]) > NOTHING:
        return False
    return float(actual[finite].max()) > condition.least * float(expected[0])


def remaining_score(rule: Rule, answer: Tensor, left_out: LeftOut) -> Tensor:
    """Return (groups,), the size of the rule's effect in each group.

    Args:
        rule: "interaction" or "weighing".
        answer: the numbers of an answer. The first axis has the variants, group by group.
        left_out: the rows and columns that do not count.
    """
    variants = answer.unflatten(0, (-1, VARIANTS[rule])).unbind(1)
    effect = _weights_of_keys(*variants) if rule == "weighing" else _interaction(*variants)
    if left_out.rows:
        effect[..., list(left_out.rows), :] = 0.0
    if left_out.columns:
        effect[..., list(left_out.columns)] = 0.0
    sizes: Tensor = effect.flatten(1).square().sum(1).sqrt()
    return sizes


def _interaction(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    return a - b - c + d


def _weights_of_keys(
    base_1: Tensor, key_1: Tensor, other_1: Tensor, base_2: Tensor, key_2: Tensor, other_2: Tensor
) -> Tensor:
    return (key_1 - base_1) * (other_2 - base_2) - (other_1 - base_1) * (key_2 - base_2)


def exceeds_one_unit(condition: Judged) -> bool:
    """Return whether the shares grow up to a limit and then add up to more than one unit.

    It is enough if this is so in one group. The answers to the factors 1 and 2 must have the same
    direction and differ in size, and those to 5 and 10 must hardly differ. The answer to 5 must be
    larger than MORE_THAN_ONE_UNIT times the reference's.
    """
    factor_1, factor_2, factor_5, factor_10 = (
        variant.flatten(1)
        for variant in condition.actual.unflatten(0, (-1, VARIANTS["limit"])).unbind(1)
    )
    expected = condition.expected.unflatten(0, (-1, VARIANTS["limit"]))[:, 2].flatten(1)
    size = factor_1.norm(dim=1)
    product = (factor_1 * factor_2).sum(1).abs()
    same_direction = product >= (1 - SAME_DIRECTION**2) * size * factor_2.norm(dim=1)
    grows = (factor_2 - factor_1).norm(dim=1) > GROWS * size
    settles = (factor_10 - factor_5).norm(dim=1) <= SETTLED * factor_5.norm(dim=1)
    is_more = factor_5.norm(dim=1) > MORE_THAN_ONE_UNIT * expected.norm(dim=1)
    return bool((same_direction & grows & settles & is_more).any())


Conditions = Mapping[str, Callable[..., Iterable[Condition]]]  # by function
