"""Which misconceptions explain what was seen. Names nothing that is not proven."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ...box.connection import AttemptEnded
from ...result import Diagnosed
from ..attempt import Exchange
from ..candidate import Performer
from ..explain import kind_of
from ..marks import Layer
from ..plugin import CheckOutcome
from .agree import comparable
from .bank import Bank
from .search import explain_values
from .table import Table

UNTOUCHED = "stub_untouched"


def diagnose(
    bank: Bank,
    table: Callable[[], Table],
    subject: Performer,
    reference: Performer,
    outcomes: Sequence[CheckOutcome],
    transcript: Iterable[Exchange],
) -> tuple[Diagnosed, ...]:
    """The misconceptions of an attempt, most likely first; empty where everything passed or nothing explains it.

    Values are explained by mutants that give the same ones. What a check proves by itself
    (a suspect), and what an exception proves, is named beside that. `table` is asked for when it is needed;
    `subject` is the attempt itself, for the table's probes.
    """
    failed = [o for o in outcomes if o.outcome not in ("passed", "skipped")]
    if not failed:
        return ()
    proven = {o.id: _proven(o) for o in failed}
    exchanges = _to_explain(failed, proven, transcript)
    try:
        values = explain_values(bank, table(), subject, reference, exchanges) if exchanges else ()
    except AttemptEnded:
        values = None
    named = {fault.mutant.id: fault.alternatives for fault in values or ()}
    exceptions = [proven[o.id] for o in failed if o.raised is not None and proven[o.id]]
    suspects = [proven[o.id] for o in sorted(failed, key=lambda o: o.layer) if o.raised is None and proven[o.id]]
    order = [*(e for e in exceptions if e != UNTOUCHED), *named, *suspects, *(e for e in exceptions if e == UNTOUCHED)]
    return tuple(_diagnosed(bank, id_, named.get(id_, ())) for id_ in dict.fromkeys(order))


def diagnosed(bank: Bank, id_: str) -> tuple[Diagnosed, ...]:
    """A misconception that is known without any check."""
    return (_diagnosed(bank, id_, ()),)


def _to_explain(
    failed: Sequence[CheckOutcome], proven: dict[str, str], transcript: Iterable[Exchange]
) -> list[Exchange]:
    """The exchanges whose values mutants must explain: all but those of checks whose failure is proven otherwise.

    Empty where no failing check is among them. Failing checks come first, gradients last.
    """
    layers = {o.id: o.layer for o in failed}
    elsewhere = {id_ for id_, name in proven.items() if name}
    exchanges = [e for e in transcript if e.check not in elsewhere and comparable(e)]
    if not any(e.check in layers for e in exchanges):
        return []
    return sorted(exchanges, key=lambda e: _how_telling(e, layers))


def _how_telling(exchange: Exchange, layers: dict[str, Layer]) -> tuple[bool, bool, bool, int]:
    """Values say more than exceptions, failing checks more than passing ones, and gradients cost most."""
    return (
        exchange.reply.raised is not None,
        exchange.check not in layers,
        exchange.call.cotangent is not None,
        layers.get(exchange.check, 0),
    )


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
