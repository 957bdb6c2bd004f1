"""Read the hostile attempts (tricks) of the folder attempts/.

Each file holds one category:

- exhausting: use up the machine's resources, or those of the reader of a reply;
- wire: write bytes of the attempt's own to the connection that the judge reads;
- stealing: read answers, inputs or secrets (most answer correctly only if they succeed);
- forging: write a score or a result;
- tensors: return subclasses of tensors, or tensors with odd memory, layouts or devices;
- cheats: typical shortcuts of machine learning code, such as the answer to another question.

The comment above each trick describes it, and gives its points of 4 and a pattern for the
evidence of a lost check.
"""

import re
from pathlib import Path
from typing import NamedTuple

ATTEMPTS = Path(__file__).parent / "attempts"
CATEGORIES = "exhausting wire stealing forging tensors cheats".split()
ABOVE_A_TRICK = re.compile(r"^# (\w+): .*\n(?:# .*\n)*?# Earns (\d): ?(.*)\n", re.MULTILINE)


class Trick(NamedTuple):
    """A hostile attempt, and the most points that it may earn."""

    text: str
    most_points: int
    evidence_pattern: str  # a regular expression for the evidence of lost checks


def read_tricks(category: str) -> dict[str, Trick]:
    """Return the tricks of a category by name. Each begins with the imports of its file."""
    text = (ATTEMPTS / f"{category}.py").read_text(encoding="utf-8")
    head, *parts = ABOVE_A_TRICK.split(text)
    rows = zip(parts[::4], parts[1::4], parts[2::4], parts[3::4], strict=True)
    return {name: Trick(head + body, int(points), pattern) for name, points, pattern, body in rows}


TRICKS = {category: read_tricks(category) for category in CATEGORIES}
