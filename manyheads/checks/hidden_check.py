"""The parts of a hidden check: decorator, outcome, evidence, random draws, and edits for mutants.

`check` gives a test its points, layer and hint. `CheckFailed` and `CheckOutcome` describe how a
check fails. `Draw` makes its inputs, of the sizes that `Sizes` chooses. `edit` makes a mutant: it
replaces a text of the reference by another one.

`Evidence` is the sentence that says how an attempt fails, apart from the numbers in it. An attempt
knows its hidden inputs, and chooses the shape and the numbers of its answer; a report that repeats
them can carry those inputs out. In grading, `redact` (judge/redact_hidden_inputs.py) therefore
shows only numbers that follow from the call. A sentence that is written out is always shown.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import IntEnum
from functools import lru_cache
from math import isfinite
from pathlib import Path
from types import SimpleNamespace
from typing import Any, LiteralString, NamedTuple

import torch
from torch import Tensor

from ..box.worker.messages import Raised
from ..result import Outcome
from .explain_exceptions import is_unfinished

_MAX_SIZE_SHOWN, _MAX_AXES_SHOWN = 100_000, 8  # no check has larger sizes, or more axes


class Layer(IntEnum):
    """The subject of a check.

    Failures are shown in this order, because the first broken layer explains later ones.
    """

    SHAPE = 0
    FINITE = 1
    CAUSALITY = 2  # and independence of batch and heads
    VALUES = 3
    GRADIENTS = 4
    HYGIENE = 5


@dataclass(frozen=True)
class Mark:
    """The arguments of `check`."""

    points: float
    layer: Layer
    hint: str
    device: str = ""  # the only device on which it runs; empty means every device


def check(
    points: float, hint: str = "", *, layer: Layer | str, device: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a function as a hidden check. Its docstring is the sentence that the student reads.

    Example: `@check(points=0.5, layer="values", hint="Which axis must be unpacked first?")`

    Args:
        points: 0 or more. course.yaml has the sum for all checks of an exercise.
        hint: the text for a student who fails the check; by default the exercise's hint.
        layer: the subject of the check: "shape", "finite", "causality", "values", "gradients" or
            "hygiene".
        device: "cuda" for a check that needs a GPU; on other devices the check does not exist. Such
            a check must give no points, so that a score means the same on every device.

    Raises:
        ValueError: if `points` or `layer` is not valid, or if a check for only one device has
            points.
    """
    import pytest  # imported late: a student's own check has no hidden checks and should start fast

    if not isinstance(points, int | float) or not isfinite(points) or points < 0:
        raise ValueError(f"points={points!r}: a check gives 0 points or more")
    layer_names = {member.name.lower(): member for member in Layer}
    if not isinstance(layer, Layer):
        if layer not in layer_names:
            raise ValueError(f"layer={layer!r}: a check has one of {', '.join(layer_names)}")
        layer = layer_names[layer]
    if device and points:
        raise ValueError(f"a check that runs on {device} alone gives no points")
    return pytest.mark.hidden_check(Mark(points, layer, hint, device))


FAILED_ITSELF = "The grader itself failed here; this is not your fault."
DIED = "The grader ended here before it was done, twice; this is not your fault."


@dataclass(frozen=True)
class CheckOutcome:
    """The verdict of one check, with the data for the student's report and the diagnosis.

    Attributes:
        suspect: the misconception that this failure proves by itself.
        raised: the attempt's exception as a `Raised`, if it raised one.
        fault: the error of the grader itself; empty if there is none.
        function: the function that the check calls. If it calls several, this is the one that
            caused the failure, as far as that is known.
        trivial_answer: whether the check itself passed, but the function gives trivial answers or
            does not meet a condition (PRECONDITIONS).
    """

    id: str
    title: str
    layer: Layer
    points: float
    hint: str
    outcome: Outcome = "skipped"
    evidence: str = ""
    suspect: str = ""
    raised: Any = None
    fault: str = ""
    function: str = ""
    trivial_answer: bool = False

    @property
    def score(self) -> float:
        """The points that were earned: all or none."""
        return self.points if self.outcome == "passed" else 0.0


class CheckFailed(AssertionError):
    """The attempt does not meet the requirement of the check. `str()` is the evidence in full.

    Attributes:
        evidence: the sentence that says how. A text becomes its only value, because a check may
            have put numbers into it that the attempt chose.
        suspect: the misconception that this failure proves by itself, even if the attempt has other
            mistakes.
        expected: sizes that the evidence states as right.
        function: the function that caused the failure, if the check itself passed.
        is_trivial_answer: whether the check itself passed, but its function gives trivial answers.
    """

    def __init__(self, evidence: Text, suspect: str = "", expected: Sequence[int] = ()) -> None:
        super().__init__(str(evidence))
        self.evidence = Evidence("{}", evidence) if isinstance(evidence, str) else evidence
        self.suspect = suspect
        self.expected = tuple(expected)
        self.function = ""
        self.is_trivial_answer = False


REFUSAL_EXPECTED = "A refusal is expected here: a ValueError that says why"


class AttemptRaised(CheckFailed):
    """The attempt raised an exception in place of an answer, or of a refusal.

    Attributes:
        raised: the exception.
        requirement: a sentence about the required behaviour, or "" if that is an answer.
    """

    def __init__(self, raised: Raised, requirement: str = "") -> None:
        super().__init__(raised.type)
        self.raised = raised
        self.requirement = "" if is_unfinished(raised) else requirement


def input_seed(secret: bytes, *labels: str) -> int:
    """Return a 63-bit seed: a part of the HMAC-SHA256 of the labels under the course secret."""
    digest = hmac.new(secret, "\0".join(labels).encode(), hashlib.sha256).digest()
    return int.from_bytes(digest[:8], "big") >> 1


class Drawn(NamedTuple):
    """A short description of random numbers, from which they can be drawn again."""

    seed: int
    position: int  # how many tensors were drawn before with this seed
    length: int  # of the flat tensor
    scale: float  # the standard deviation

    def numbers(self) -> Tensor:
        """Return the (length,) numbers in float64.

        They are the same on every processor, with every version of torch. Each is the sum of four
        whole numbers of 32 bits from a hash (SHAKE-128). So the numbers are bell-shaped, and none
        is larger than 2√3 standard deviations. float32 represents each number exactly, because
        files store float32, and an attempt may be called in float32.
        """
        return _numbers(self).clone()  # a check may change its copy


@lru_cache(maxsize=2048)  # every attempt of a run gets the same ones
def _numbers(drawn: Drawn) -> Tensor:
    if not drawn.length:
        return torch.zeros(0, dtype=torch.float64)
    digest = hashlib.shake_128(f"{drawn.seed} {drawn.position}".encode()).digest(16 * drawn.length)
    summands = torch.frombuffer(bytearray(digest), dtype=torch.int32).view(-1, 4)
    return (summands.sum(1).double() * (math.sqrt(3) / 2**32) * drawn.scale).float().double()


# A draw of eight sizes from the same eight numbers has different ones in 0.24% of all cases, so
# sizes that differ in none of so many draws cannot differ.
MAX_DRAWS = 10_000


class Draw:
    """The random numbers of one check: float64 on the CPU."""

    def __init__(self, seed: int, drawn: list[Drawn] | None = None) -> None:
        """Begin with a seed.

        Args:
            seed: the seed.
            drawn: a list to which the description of each drawn tensor is added.
        """
        self._seed, self._position = seed, 0
        self._random = random.Random(seed)
        self._drawn = [] if drawn is None else drawn

    def __call__(self, *shape: int, scale: float = 1.0) -> Tensor:
        """Return bell-shaped numbers of this shape, with mean 0 and standard deviation `scale`."""
        drawn = Drawn(self._seed, self._position, math.prod(shape), scale)
        self._drawn.append(drawn)
        self._position += 1
        return drawn.numbers().view(shape)

    def weights(self, *shape: int) -> Tensor:
        """Return a weight (out, in) with standard deviation 1/√in.

        With it, activations keep their scale.
        """
        return self(*shape, scale=1 / math.sqrt(shape[-1]))

    def sizes(self, **choices: tuple[int, int] | list[int]) -> SimpleNamespace:
        """Return integers that differ pairwise, by name: `draw.sizes(B=[5, 7], T=(9, 13))`.

        A tuple is a range with both ends included; a list contains the integers to choose from.

        Raises ValueError if the sizes are not all different in MAX_DRAWS draws.
        """
        allowed = {
            name: choice if isinstance(choice, list) else range(choice[0], choice[1] + 1)
            for name, choice in choices.items()
        }
        for _ in range(MAX_DRAWS):
            picked = {name: self._random.choice(numbers) for name, numbers in allowed.items()}
            if len(set(picked.values())) == len(picked):
                return SimpleNamespace(**picked)
        raise _never_different(allowed)

    def integer(self, low: int, high: int) -> int:
        """Return an integer from low to high, both included."""
        return self._random.randint(low, high)


def _never_different(names: Iterable[str]) -> ValueError:
    """Return the error for the author of sizes that MAX_DRAWS draws could not make different."""
    return ValueError(
        f"{', '.join(names)} are not all different in {MAX_DRAWS} draws: give them more numbers to "
        "choose from"
    )


_SOLUTIONS = re.compile(r"### BEGIN SOLUTION.*?### END SOLUTION", re.DOTALL)


class EditError(ValueError):
    """The text that an edit replaces does not occur exactly once."""


@dataclass(frozen=True)
class Edit:
    """Replacements of texts in the reference, which make a mutant."""

    changes: Mapping[str, str]  # text of the reference -> its replacement

    def apply(self, reference_text: str) -> str:
        """Return the edited text of the reference, with one replacement after the other.

        Raises EditError unless each text occurs exactly once, in the reference or between the
        solution's marks, at its turn.
        """
        edited_text = reference_text
        for old, new in self.changes.items():
            offset = _offset(edited_text, old)
            edited_text = edited_text[:offset] + new + edited_text[offset + len(old) :]
        return edited_text


def _offset(reference_text: str, old: str) -> int:
    """Return the offset of the text `old` in the reference.

    The text may also occur in the explanations of the lesson. Then the occurrence between the
    solution's marks counts. Raises EditError unless there is exactly one.
    """
    solutions = [match.span() for match in _SOLUTIONS.finditer(reference_text)]
    spans = [(0, len(reference_text)), *solutions]
    counts = [reference_text.count(old, *span) for span in spans]
    if counts[0] == 1:
        return reference_text.index(old)
    if sum(counts[1:]) == 1:
        return reference_text.index(old, *spans[1 + counts[1:].index(1)])
    raise EditError(f"{old!r} occurs {counts[0]} times, and an edit needs it exactly once")


def edit(old: str, new: str, more_changes: Mapping[str, str] | None = None) -> Edit:
    """Return an edit of the reference, for a row `(id, edit)` of MUTANTS or of FAMILIES.

    Args:
        old: a text of the solution file, as for `Mutant`.
        new: its replacement in the mutant.
        more_changes: further replacements of the same fault.
    """
    return Edit({old: new, **(more_changes or {})})


@dataclass(frozen=True)
class Mutant:
    """A wrong attempt, for MUTANTS: a change of the reference, and the misconception behind it.

    Example: `Mutant("scale_missing", "", replacing="/ math.sqrt(head_dim)")`

    Each text of the solution file, including blanks, must occur exactly once, in the file or
    between the solution's marks.

    Attributes:
        id: the misconception.
        new: the new text. If a fault changes several texts, a dict with the new text for each.
        replacing: the text of the solution file that `new` replaces, unless `new` is a dict.
        variant: arguments for the bank's `make`, if no edit can express the mutant.
    """

    id: str
    new: str | Mapping[str, str] = ""
    _: KW_ONLY
    replacing: str = ""
    variant: Mapping[str, object] | None = None

    @property
    def change(self) -> Edit | Mapping[str, object]:
        """The edit of the reference, or the arguments of `make`."""
        if self.variant is not None:
            return self.variant
        return Edit({self.replacing: self.new} if isinstance(self.new, str) else self.new)


@dataclass(frozen=True)
class Number:
    """A real number that depends on the answer, such as a factor.

    Attributes:
        value: the number.
        digits: the number of significant digits that are shown.
    """

    value: float
    digits: int = 4

    def __str__(self) -> str:
        return f"{self.value:.{self.digits}g}"


@dataclass(frozen=True)
class Percent:
    """A fraction that depends on the answer, shown in percent.

    Attributes:
        value: the fraction; 1 is 100%.
        decimals: the number of decimals that are shown.
    """

    value: float
    decimals: int = 0

    def __str__(self) -> str:
        return f"{self.value:.{self.decimals}%}"


@dataclass(frozen=True)
class Listed:
    """Several values with a text between them: `Listed([3, 5], " and ")` is shown as "3 and 5"."""

    values: Sequence[Value]
    separator: str = ", "


class Evidence:
    """A sentence with a {} for each value: `Evidence("{} of {} heads are right", right, heads)`.

    The sentence must be written out: an f-string would hide which of its numbers depend on the
    answer. A value may be a sentence with values, too.
    """

    def __init__(self, sentence: LiteralString, *values: Value) -> None:
        """Keep the sentence apart from its values.

        Raises TypeError for a value of another type, such as a tensor.
        """
        for value in values:
            if not isinstance(value, _TYPES_OF_VALUES):
                type_name = type(value).__name__
                raise TypeError(f"evidence shows no {type_name}: pass a number, a shape or a text")
        self._sentence, self._values = sentence, values

    def __str__(self) -> str:
        return self.render(in_full)

    def render(self, show: Callable[[Shown], str]) -> str:
        """Return the sentence with the text that `show` returns for each value.

        Sentences and lists among the values are rendered in the same way.
        """

        def text_of(value: Value) -> str:
            if isinstance(value, Evidence):
                return value.render(show)
            if isinstance(value, Listed):
                return value.separator.join(map(text_of, value.values))
            return show(value)

        return self._sentence.format(*map(text_of, self._values))


# A size, count or position; a factor; several positions; a shape, or an index in a tensor; a
# percentage; or a text. None stands for a number that the answer does not have.
Shown = int | float | list[int] | tuple[int, ...] | Number | Percent | str | None
Value = Shown | Evidence | Listed
Text = str | Evidence
_TYPES_OF_VALUES = (int, float, list, tuple, Number, Percent, str, type(None), Evidence, Listed)


def in_full(value: Shown) -> str:
    """Return the value as the student's own machine shows it."""
    return shape_text(value) if isinstance(value, tuple) else str(value)


def is_check_file(path: Path) -> bool:
    """Return whether a file belongs to a course's hidden checks."""
    return path.parts[-3:-1] == ("grader", "checks")


def shape_text(
    shape: Sequence[int], show: Callable[[int], str] = str, max_axes: int = _MAX_AXES_SHOWN
) -> str:
    """Return the shape as Python writes it, with "…" for too large sizes and for too many axes.

    A student may have chosen them.

    Args:
        shape: the shape.
        show: returns the text of a size that is not too large.
        max_axes: the most axes that are shown.
    """
    max_axes = min(max_axes, _MAX_AXES_SHOWN)
    sizes = [show(size) if size <= _MAX_SIZE_SHOWN else "…" for size in shape[:max_axes]]
    if len(shape) > max_axes:
        sizes.append("…")
    comma = "," if len(shape) == 1 else ""
    return f"({', '.join(sizes)}{comma})"


Choice = tuple[int, int] | list[int]
Rule = Callable[[SimpleNamespace, Draw | None], int]


class Sizes:
    """Draws sizes that differ pairwise, of which some follow from others.

    Example: `SIZES = Sizes(nh=[5], hd=[6], C=lambda s, draw: s.nh * s.hd)`, then
    `s = SIZES(draw)` and `x = draw(7, s.C)`.

    Args:
        choices: as `draw.sizes` takes them, or a function of the sizes before it and of draw.
    """

    def __init__(self, **choices: Choice | Rule) -> None:
        self.choices = dict[str, Choice]()
        self.following = dict[str, Rule]()
        for name, choice in choices.items():
            if callable(choice):
                self.following[name] = choice
            else:
                self.choices[name] = choice

    def __call__(self, draw: Draw, **fixed: int) -> SimpleNamespace:
        """Return sizes that differ pairwise, by name.

        Args:
            draw: draws the sizes.
            **fixed: sizes that replace drawn ones, and may equal others. The sizes that follow from
                them change with them.

        Raises:
            ValueError: the sizes are not all different in MAX_DRAWS draws.
        """
        for _ in range(MAX_DRAWS):
            s = self.replace(draw.sizes(**self.choices), draw)
            if len({*vars(s).values()}) == len(vars(s)):
                return self.replace(s, draw, **fixed) if fixed else s
        raise _never_different([*self.choices, *self.following])

    def replace(
        self, s: SimpleNamespace, draw: Draw | None = None, **sizes: int
    ) -> SimpleNamespace:
        """Return the same sizes, except for these and for those that follow from them.

        Args:
            s: sizes by name.
            draw: draws the sizes whose rule draws one; without such a rule, it is not needed.
            **sizes: the sizes to replace.
        """
        s = replace_sizes(s, **sizes)
        for name, rule in self.following.items():
            setattr(s, name, rule(s, draw))
        return s


def replace_sizes(s: SimpleNamespace, **sizes: int) -> SimpleNamespace:
    """Return the same sizes, except for these.

    Example: `for case in (s, replace_sizes(s, T=1)): …`

    Args:
        s: sizes by name.
        sizes: the sizes to replace.
    """
    return SimpleNamespace(**{**vars(s), **sizes})
