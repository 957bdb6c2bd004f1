"""Assemble a seccomp filter: from the number of each system call to a verdict, found by binary search.

Classic BPF is written out here because it is short, and no maintained binding installs without a compiler or a system
library. Source: seccomp(2) and linux/filter.h.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050000 | 1, 0x00050000 | 38  # verdicts; two are errors
ALL_BITS = 0xFFFFFFFF
_LOAD, _JUMP, _EQUAL, _AT_LEAST, _AND, _RETURN = 0x20, 0x05, 0x15, 0x35, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_FURTHEST = 255  # instructions that a conditional jump can skip

_Code = list[bytes]


@dataclass(frozen=True)
class Condition:
    """Whether the masked argument is, or with `wanted=False` is not, one of the values. An argument is read as its lower 32
    bits, because most are ints to the kernel; `upper` reads the other half, as a pointer needs."""

    argument: int  # from 0
    values: tuple[int, ...]
    mask: int = ALL_BITS
    wanted: bool = True
    upper: bool = False


@dataclass(frozen=True)
class Rule:
    """Allows a call where all conditions of one of the alternatives hold; else the call fails with EPERM."""

    alternatives: tuple[tuple[Condition, ...], ...]

    def __init__(self, *alternatives: Sequence[Condition]) -> None:
        object.__setattr__(self, "alternatives", tuple(map(tuple, alternatives)))


Verdict = int | Rule


def assemble(architecture: int, verdicts: Mapping[int, Verdict], first_unknown: int) -> bytes:
    """The program. Numbers that have no verdict fail with EPERM, and with ENOSYS from `first_unknown` on.

    Another architecture's calls, which the processor may understand too, end the process.
    """
    ends = [0, *(number for known in verdicts for number in (known, known + 1)), first_unknown]
    starts = sorted(set(ends))
    intervals: list[tuple[int, Verdict]] = []  # the first number of each, and the verdict up to the next
    for start in starts:
        verdict = verdicts.get(start, EPERM if start < first_unknown else ENOSYS)
        if not intervals or intervals[-1][1] != verdict:
            intervals.append((start, verdict))
    code = [_op(_LOAD, _ARCHITECTURE), _op(_EQUAL, architecture, 1, 0), _op(_RETURN, KILL), _op(_LOAD, _NUMBER)]
    return b"".join([*code, *_search(intervals)])


def _search(intervals: Sequence[tuple[int, Verdict]]) -> _Code:
    """Binary search for the interval that the number in the accumulator is in."""
    if len(intervals) == 1:
        verdict = intervals[0][1]
        return _rule(verdict) if isinstance(verdict, Rule) else [_op(_RETURN, verdict)]
    middle = len(intervals) // 2
    below, above = _search(intervals[:middle]), _search(intervals[middle:])
    if len(below) <= _FURTHEST:
        return [_op(_AT_LEAST, intervals[middle][0], len(below), 0), *below, *above]
    return [_op(_AT_LEAST, intervals[middle][0], 0, 1), _op(_JUMP, len(below)), *below, *above]


def _rule(rule: Rule) -> _Code:
    code: _Code = []
    for conditions in rule.alternatives:
        code += _all_of(conditions)
    return [*code, _op(_RETURN, EPERM)]


def _all_of(conditions: Iterable[Condition]) -> _Code:
    """Return ALLOW where all conditions hold, else continue after this code."""
    code = [_op(_RETURN, ALLOW)]
    for condition in reversed(list(conditions)):
        code = [*_condition(condition, len(code)), *code]
    return code


def _condition(condition: Condition, to_failure: int) -> _Code:
    """Continue after this code where the condition holds, else skip as many more instructions."""
    code = [_op(_LOAD, _ARGUMENTS + 8 * condition.argument + 4 * condition.upper)]
    if condition.mask != ALL_BITS:
        code.append(_op(_AND, condition.mask))
    found, not_found = (0, to_failure) if condition.wanted else (to_failure, 0)
    last = len(condition.values) - 1
    for i, value in enumerate(condition.values):
        code.append(_op(_EQUAL, value, last - i + found, not_found if i == last else 0))
    return code


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
