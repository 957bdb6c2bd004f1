"""The claim that a mistake with a number in it is named at numbers that nobody has listed."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from ...course import Exercise
from ...diagnosis import Bank
from .claim import Claim
from .trial import Trial, is_first

NUMBERS = 3  # for each family
MIDDLE = 0.6  # of the logarithms between the limits; at the limits one mistake turns into another, or into none


def verify_families(exercise: Exercise, bank: Bank, trial: Trial) -> Iterator[Claim]:
    """The claim. None where the bank has no family."""
    if not bank.families:
        return
    draw = random.Random(exercise.id)
    held, failures = 0, []
    for family in bank.families:
        low, high = math.log(family.low), math.log(family.high)
        margin = (high - low) * (1 - MIDDLE) / 2
        for _ in range(NUMBERS):
            knobs = family.knobs(math.exp(draw.uniform(low + margin, high - margin)))
            outcomes, told = trial(family.make(**knobs))
            if all(o.outcome == "passed" for o in outcomes):
                failures.append(f"{family.id} ({knobs}) passes every check")
            elif is_first(family.id, told):
                held += 1
            else:
                failures.append(f"{family.id} ({knobs}) is named {[d.id for d in told]}")
    says = "a mistake with a number is named at numbers that are not listed"
    next_ = "let a check tell these numbers from others, or narrow the family's limits"
    yield Claim(exercise.id, says, held, held + len(failures), tuple(failures), next=next_)
