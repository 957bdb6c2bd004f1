"""Which misconceptions explain what was seen. Names nothing that is not proven."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence

from ..box.connection import AttemptEnded
from ..checks.explain import kind_of
from ..checks.implementation import LocalRunner
from ..checks.local import CachedRunner
from ..checks.marks import Layer
from ..checks.outcome import CheckOutcome
from ..checks.recording import BatchRunner, Exchange
from ..result import Diagnosed
from .agree import comparable
from .bank import Bank
from .by_name import ByName, takes_another_order
from .own_sizes import works_for_its_own_sizes
from .search import Fault, explain_values
from .sizes import has_fixed_size
from .table import Table

# Pairs that are replayed there: probes without gradients rule out few, and of 115 such searches none found a pair.
PAIRS_BY_OUTPUTS = 12
UNTOUCHED, INTERFACE, HARD_CODED = "stub_untouched", "interface", "hard_coded_shape"


def diagnose(
    bank: Bank,
    table: Callable[[], Table],
    subject: BatchRunner,
    reference: LocalRunner,
    outcomes: Sequence[CheckOutcome],
    transcript: Iterable[Exchange],
    source: str = "",
) -> tuple[Diagnosed, ...]:
    """The misconceptions of an attempt, most likely first; empty where everything passed or nothing explains it.

    Values are explained by mutants that give the same ones. What a check proves by itself
    (a suspect), and what an exception proves, is named beside that. `table` is asked for when it is needed;
    `subject` is the attempt itself, for the table's probes; `source` its text, for the sizes that stand there.
    """
    failed = [o for o in outcomes if o.outcome not in ("passed", "skipped")]
    if not failed:
        return ()
    reference = CachedRunner(reference.namespace, reference.device, reference.only_values)
    proven = {o.id: _proven(o) for o in failed}
    transcript = [e for e in transcript if comparable(e)]
    exchanges = _to_explain(failed, proven, transcript)
    try:
        if takes_another_order(subject, reference, _of_failed(failed, transcript)):
            return _beside_the_order(bank, table, ByName(subject, reference.namespace), reference, transcript)
        values = explain_values(bank, table(), subject, reference, exchanges) if exchanges else ()
        if values is None and not any(proven.values()):
            values = _by_outputs(bank, table, subject, reference, exchanges)
    except AttemptEnded:
        values = None
    named = {fault.mutant.id: fault.alternatives for fault in values or ()}
    exceptions = [proven[o.id] for o in failed if o.raised is not None and proven[o.id]]
    suspects = [proven[o.id] for o in sorted(failed, key=lambda o: o.layer) if o.raised is None and proven[o.id]]
    if not named and _gives_nothing(transcript):
        suspects = [UNTOUCHED]
    elif values is None and HARD_CODED not in suspects and _is_hard_coded(subject, reference, transcript, source):
        suspects.append(HARD_CODED)
    order = [*(e for e in exceptions if e != UNTOUCHED), *named, *suspects, *(e for e in exceptions if e == UNTOUCHED)]
    return tuple(_diagnosed(bank, id_, named.get(id_, ())) for id_ in dict.fromkeys(order))


def _is_hard_coded(subject: BatchRunner, reference: LocalRunner, transcript: Sequence[Exchange], source: str) -> bool:
    """Whether sizes are fixed, as the answers that are there show, or more of them."""
    if has_fixed_size(reference, transcript):
        return True
    try:
        return works_for_its_own_sizes(subject, reference, transcript, source)
    except AttemptEnded:
        return False


def _beside_the_order(
    bank: Bank, table: Callable[[], Table], subject: ByName, reference: LocalRunner, transcript: Sequence[Exchange]
) -> tuple[Diagnosed, ...]:
    """The order of the arguments, and what else is wrong once they are given by name."""
    values = explain_values(bank, table(), subject, reference, subject.asked_again(transcript))
    others = [f for f in values or () if f.mutant.id != INTERFACE]
    return (
        _diagnosed(bank, INTERFACE, ()),
        *(_diagnosed(bank, f.mutant.id, f.alternatives) for f in others),
    )


def _by_outputs(
    bank: Bank,
    table: Callable[[], Table],
    subject: BatchRunner,
    reference: LocalRunner,
    exchanges: Sequence[Exchange],
) -> tuple[Fault, ...] | None:
    """What explains the outputs alone. One mistake written in two ways may give the same outputs with other gradients:

    NaN spreads further through one softmax than through another.
    """
    if all(e.call.cotangent is None for e in exchanges):
        return None
    outputs = [_without_gradients(e) for e in exchanges]
    return explain_values(bank, table(), subject, reference, outputs, PAIRS_BY_OUTPUTS)


def _without_gradients(exchange: Exchange) -> Exchange:
    if exchange.call.cotangent is None or exchange.reply.raised is not None:
        return exchange
    call = dataclasses.replace(exchange.call, cotangent=None, second=False)
    return dataclasses.replace(exchange, call=call, reply=dataclasses.replace(exchange.reply, gradients={}))


def _of_failed(failed: Sequence[CheckOutcome], transcript: Iterable[Exchange]) -> list[Exchange]:
    ids = {o.id for o in failed}
    return [e for e in transcript if e.check in ids]


def _gives_nothing(exchanges: Iterable[Exchange]) -> bool:
    """Whether all of several functions answer None: no function without a body gives more.

    One function alone that gives None has more likely lost its `return`.
    """
    answered = [e for e in exchanges if e.reply.outputs]
    kinds = {out.kind for e in answered for out in e.reply.outputs}
    return kinds == {"NoneType"} and len({e.call.subject for e in answered if isinstance(e.call.subject, str)}) > 1


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
    exchanges = [e for e in transcript if e.check not in elsewhere]
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
