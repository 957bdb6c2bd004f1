"""Tricks of students: what each earns of 4 points, and what a lost check says.

They stand in attempts/, by what they try: to exhaust the machine or a reader of an answer; to write
to the wire, where the judge reads every byte as if an enemy had sent it; to steal answers, inputs
or secrets (most of these answer rightly if, and only if, they find what they look for); to forge a
score; to pass off tensors that are not what they seem; and the cheats that machine learning code
invites, the right answer to another question. A comment above each says what it tries and earns.
"""

import re
from pathlib import Path
from typing import NamedTuple

ATTEMPTS = Path(__file__).parent / "attempts"
CATEGORIES = "exhausting wire stealing forging tensors cheats".split()
ABOVE_A_TRICK = re.compile(r"^# (\w+): .*\n(?:# .*\n)*?# Earns (\d): ?(.*)\n", re.MULTILINE)


class Trick(NamedTuple):
    """A hostile attempt."""

    text: str
    most_points: int
    says: str  # a pattern of the evidence of a lost check


def read_tricks(category: str) -> dict[str, Trick]:
    """Return the tricks of a category. The head of its file stands above each of them."""
    text = (ATTEMPTS / f"{category}.py").read_text(encoding="utf-8")
    head, *parts = ABOVE_A_TRICK.split(text)
    rows = zip(parts[::4], parts[1::4], parts[2::4], parts[3::4], strict=True)
    return {name: Trick(head + body, int(points), says) for name, points, says, body in rows}


TRICKS = {category: read_tricks(category) for category in CATEGORIES}
