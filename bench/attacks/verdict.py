"""From evidence to the words that stand in the table."""

from __future__ import annotations

from .exercise import POINTS
from .run import Evidence

GIB = 1 << 30
SLOWER = 30.0  # seconds more than the control took, from which on it is worth a word


def is_sound(control: Evidence) -> bool:
    """Whether the grader grades at all: a wrong attempt earns shape and refusal, and an honest one everything."""
    return (control.score, control.neighbour) == (2.0, float(POINTS)) and verdict(control, control)[0].startswith(
        "held"
    )


def verdict(seen: Evidence, control: Evidence) -> list[str]:
    """What the trick achieved, the worst first; `held` and the score where it achieved nothing."""
    return _achieved(seen, control) or [f"held, {_score(seen.score)}{_late(seen, control)}"]


def _achieved(seen: Evidence, control: Evidence) -> list[str]:
    words = []
    earned, other = control.score or 0.0, control.neighbour or 0.0
    if seen.score is not None and seen.score > earned:
        words.append("full marks" if seen.score >= POINTS else f"{_score(seen.score)} forged")
    if seen.sent_out:
        words.append("hidden tests sent out")
    elif seen.connected:
        words.append("reached the network")
    if seen.neighbour is None:
        words.append("neighbour not graded")
    elif seen.neighbour < other:
        words.append(f"neighbour lost {other - seen.neighbour:g} points")
    if seen.hung:
        words.append(f"hung, stopped after {seen.seconds:.0f} s")
    elif seen.left_running:
        words.append(f"{len(seen.left_running)} process{'es' * (len(seen.left_running) > 1)} left running")
    if seen.largest > control.largest + 2 * GIB:
        words.append(f"took {(seen.largest - control.largest) / GIB:.1f} GiB")
    if seen.left_in_memory:
        words.append(f"{seen.left_in_memory / 1e6:.0f} MB left in /dev/shm")
    return words


def _score(score: float | None) -> str:
    return "no score" if score is None else f"{score:g} of {POINTS}"


def _late(seen: Evidence, control: Evidence) -> str:
    return f" after {seen.seconds:.0f} s" if seen.seconds > control.seconds + SLOWER else ""
