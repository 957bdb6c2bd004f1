"""A trial of trusted code: its checks and its diagnosis, and what claims ask of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...checks.outcome import CheckOutcome
from ...result import Diagnosed

Namespace = Mapping[str, object]
Trial = Callable[[Namespace], tuple[Sequence[CheckOutcome], Sequence[Diagnosed]]]
Behaviour = tuple[tuple[str, str, str], ...]


def behaviour_of(outcomes: Sequence[CheckOutcome]) -> Behaviour:
    """How the checks ended, and with which evidence."""
    return tuple((o.id, o.outcome, o.evidence) for o in outcomes)


def is_first(id_: str, diagnosis: Sequence[Diagnosed]) -> bool:
    """Whether the misconception is named first, or may stand in place of the first."""
    return bool(diagnosis) and id_ in (diagnosis[0].id, *diagnosis[0].alternatives)
