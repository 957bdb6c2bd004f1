"""Which misconceptions explain what was seen. Names nothing that is not proven."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...result import Diagnosed
from ..attempt import Exchange
from ..candidate import Performer
from ..explain import kind_of
from ..plugin import CheckOutcome
from .agree import comparable
from .bank import Bank
from .search import Explanation, explain_values

UNTOUCHED = "stub_untouched"


def diagnose(
    bank: Bank, reference: Performer, outcomes: Sequence[CheckOutcome], transcript: Iterable[Exchange]
) -> tuple[Diagnosed, ...]:
    """The misconceptions of an attempt, most likely first; empty where everything passed or nothing explains it.

    Values are explained by mutants that give the same ones. What a check proves by itself
    (a suspect), and what an exception proves, is named beside that.
    """
    failed = [o for o in outcomes if o.outcome not in ("passed", "skipped")]
    if not failed:
        return ()
    proven = {o.id: _proven(o) for o in failed}
    values = _explain(bank, reference, failed, proven, transcript)
    named = [m.id for m in values.mutants] if values else []
    exceptions = [proven[o.id] for o in failed if o.raised is not None and proven[o.id]]
    suspects = [proven[o.id] for o in sorted(failed, key=lambda o: o.layer) if o.raised is None and proven[o.id]]
    order = [*(e for e in exceptions if e != UNTOUCHED), *named, *suspects, *(e for e in exceptions if e == UNTOUCHED)]
    alternatives = {named[0]: values.alternatives} if values and named else {}
    return tuple(_diagnosed(bank, id_, alternatives.get(id_, ())) for id_ in dict.fromkeys(order))


def diagnosed(bank: Bank, id_: str) -> tuple[Diagnosed, ...]:
    """A misconception that is known without any check."""
    return (_diagnosed(bank, id_, ()),)


def _explain(
    bank: Bank,
    reference: Performer,
    failed: Sequence[CheckOutcome],
    proven: dict[str, str],
    transcript: Iterable[Exchange],
) -> Explanation | None:
    """Explain the values of every call but those of checks whose failure is proven to be something else."""
    layers = {o.id: o.layer for o in failed}
    elsewhere = {id_ for id_, name in proven.items() if name}
    exchanges = [e for e in transcript if e.check not in elsewhere and comparable(e)]
    exchanges.sort(key=lambda e: (e.check not in layers, e.call.cotangent is not None, layers.get(e.check, 0)))
    if not any(e.check in layers for e in exchanges):
        return Explanation(())
    return explain_values(bank, reference, exchanges, reference.device)


def _proven(outcome: CheckOutcome) -> str:
    """The misconception that this failure proves by itself, if it does."""
    if outcome.raised is None:
        return outcome.suspect
    kind = kind_of(outcome.raised)
    return (kind.misconception if kind else None) or ""


def _diagnosed(bank: Bank, id_: str, alternatives: tuple[str, ...]) -> Diagnosed:
    text = bank.texts.get(id_)
    if text is None:
        return Diagnosed(id=id_, title=id_.replace("_", " "), hint="", alternatives=alternatives)
    return Diagnosed(id=id_, title=text.title, hint=text.hints[0], alternatives=alternatives)
