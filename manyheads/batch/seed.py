"""The seed of a run, from which the inputs of all its attempts are drawn."""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from ..errors import CourseFault

SEEDS = 1_000_000  # a number that is easily typed; nobody can compute inputs from it without the course's secret


def seed_of_run(folder: Path, assignments: Iterable[str], given: int | None, *, afresh: bool, in_part: bool) -> int:
    """Return the seed that is given; else that of the results in the folder, which the run goes on with; else a new one.

    afresh: whether nothing of these results stays, so that a new one is drawn.
    in_part: whether what they hold of some exercises stays: then it is their seed, because a result states one. Raises
    CourseFault where they have another one than is given, or several.
    """
    found = _seeds_in(folder, assignments)
    before = found.most_common(1)[0][0] if found else None
    if in_part and before is not None:
        if set(found) != {before if given is None else given}:
            raise CourseFault(
                f"what {folder} holds of the other exercises has the seed {', '.join(map(str, sorted(found)))}, and a result "
                "states one seed. Next: the same command without --seed and --exercise, or with another --out"
            )
        return before
    if given is not None:
        return given
    return secrets.randbelow(SEEDS) if before is None or afresh else before


def _seeds_in(folder: Path, assignments: Iterable[str]) -> Counter[int]:
    """Count the seeds of the results of these assignments. What is no result is passed over."""
    found = Counter[int]()
    for assignment in assignments:
        for path in sorted(folder.glob(f"*/{assignment}.json")):
            try:
                found[int(json.loads(path.read_bytes())["seed"])] += 1
            except (OSError, ValueError, TypeError, LookupError):
                continue
    return found
