"""Name the misconceptions that explain an attempt's answers. Nothing is named without proof."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set

from ..box.connection import AttemptEnded
from ..checks.explain import is_unfinished
from ..checks.implementation import LocalRunner
from ..checks.local import CachedRunner, Replays
from ..checks.marks import Layer
from ..checks.outcome import CheckOutcome
from ..checks.recording import BatchRunner, Exchange, replies_of, target_of
from ..result import Diagnosed
from ..submission.unwritten import UNTOUCHED, is_unwritten, unwritten_names
from .agree import agree, comparable
from .bank import Bank
from .by_function import explain_functions
from .by_name import ByName, takes_another_order
from .causes import can_cause, learns_more
from .diagnosis import Diagnosis
from .equal_sizes import WRONG_AXIS, EqualSizes, ask_where_sizes_are_equal, how_it_fails, without
from .guards import REFUSES, UNDIVIDED, Refused, refused_by_guards
from .in_order import explain_in_order
from .own_sizes import HARD_CODED, MANY, has_written_size, works_for_its_own_sizes
from .proven import MUTATED, proven_by
from .ranks import works_for_another_rank
from .search import CONFIRMED_PAIRS, Fault, explain_values, refuses_in_its_own_way
from .sizes import has_fixed_size
from .table import Table

# How many pairs a search without gradients replays: its probes rule out few, and none of 115 such searches found a pair.
PAIRS_BY_OUTPUTS = 12
INTERFACE = "interface"


def diagnose(
    bank: Bank,
    table: Callable[[], Table],
    subject: BatchRunner,
    reference: LocalRunner,
    outcomes: Sequence[CheckOutcome],
    transcript: Iterable[Exchange],
    source: str | None = None,
    replays: Replays | None = None,
    checks_failed_by: Callable[[], Mapping[str, Sequence[Set[str]]]] = dict,
) -> Diagnosis:
    """The misconceptions of an attempt.

    A mutant with the same values explains values. In addition, a misconception is named that a check proves by itself
    (its suspect) or that an exception proves.

    Args:
        table: called only if the table is needed.
        subject: the attempt, to be asked the table's probes.
        source: the attempt's text, for the sizes that it contains and for whether there is anything in it; None where it
            is not at hand.
        replays: of earlier attempts.
        checks_failed_by: for each misconception the checks that each of its mutants fails; empty if that is not known.
    """
    failed = [o for o in outcomes if o.outcome not in ("passed", "skipped")]
    if not failed:
        return Diagnosis()
    if not any(o.outcome == "passed" for o in outcomes) and source is not None and is_unwritten(source):
        return diagnosed(bank, UNTOUCHED)
    source = source or ""
    reference = CachedRunner(reference.namespace, reference.device, only_values=True, replays=replays or Replays())
    transcript, unwritten = list(transcript), unwritten_names(source)
    everything = transcript
    empty = {e.check for e in transcript if target_of(e.call) in unwritten}
    mutates = any(e.reply.mutated for e in transcript)
    proven = {o.id: UNTOUCHED if o.id in empty else o.suspect or proven_by(o.raised, mutates) for o in failed}
    transcript = [e for e in transcript if comparable(e) and target_of(e.call) not in unwritten]
    exchanges = _to_explain(failed, proven, transcript)
    failing, equal, wrong_axis = "", EqualSizes(), False
    try:
        if takes_another_order(subject, reference, _of_failed(failed, transcript)):
            return _order_and_more(bank, table, ByName(subject, reference.namespace), reference, transcript)
        failing = how_it_fails(reference, exchanges)
        # Exceptions alone many mistakes have in common; an answer of another shape is a mutant's, or nobody's.
        if failing == "raised":
            equal = ask_where_sizes_are_equal(subject, reference, exchanges)
            # All attempts are asked alike there, and many mutants with them.
            held = [dataclasses.replace(e, call=reference.replays.hold(e.call)) for e in equal.answers]
            exchanges = [*held, *exchanges]
        pairs = 0 if equal.works else CONFIRMED_PAIRS  # who is right as soon as two sizes are equal has one fault
        values = explain_values(bank, table(), subject, reference, exchanges, pairs) if exchanges else ()
        if values is None and failing == "shape":
            equal = ask_where_sizes_are_equal(subject, reference, exchanges)
        wrong_axis = values is None and equal.works
        values = () if wrong_axis else values
        if values is None and not any(proven.values()):
            values = _by_outputs(bank, table, subject, reference, exchanges)
        if values is None and any(proven.values()):
            values = explain_in_order(bank, {*proven.values()}, reference, everything)
        if values is None:
            values = explain_functions(bank, table(), subject, reference, exchanges)
        refused = refused_by_guards(transcript, reference, source)
        accepting = {e.check for e in everything if e.reply.raised is None and reference.execute(e.call).raised}
        follows = any(proven[o.id] and o.raised is None and o.id not in accepting for o in failed)
        if refused and not follows and not _is_of_more(values, refused, exchanges, reference, proven.values()):
            by_guards = [each.exchange for each in refused]
            proven |= {o.id: REFUSES for o in failed if o.raised in [e.reply.raised for e in by_guards]}
            behind = [e for e in transcript if all(e is not each for each in by_guards)]
            exchanges = _to_explain(failed, proven, behind)
            values = explain_values(bank, table(), subject, reference, exchanges) if exchanges else ()
    except AttemptEnded:
        values, wrong_axis = None, False
    if not mutates and any(fault.mutant.id == MUTATED for fault in values or ()):
        values = None  # the same complaint of autograd, of another tensor
    if failing == "raised" and values and not equal.works:
        values = without(WRONG_AXIS, values)
    if failing == "raised" and values and not (has_written_size(source) or _answers(exchanges)):
        values = without(HARD_CODED, values)
    named = {fault.mutant.id: fault.alternatives for fault in values or ()}
    unfinished = [o for o in failed if proven[o.id] == UNTOUCHED or (o.raised and is_unfinished(o.raised))]
    written = [o for o in failed if proven[o.id] and o not in unfinished]
    exceptions = [proven[o.id] for o in written if o.raised is not None]
    also: list[str] = []
    suspects = [
        proven[o.id]
        for o in sorted(written, key=lambda o: o.layer)
        if o.raised is None and not _follows(o, values, reference, transcript)
    ]
    if wrong_axis or WRONG_AXIS in named:  # a check that tried a few sizes may have taken the one for the other
        suspects = [s for s in suspects if s != HARD_CODED]
    if wrong_axis:
        suspects = [WRONG_AXIS, *suspects]
    elif not named and _returns_nothing(transcript):
        suspects = [UNTOUCHED]
    elif REFUSES in exceptions:  # what a guard keeps from being run need not be explained
        pass
    elif values is None and HARD_CODED not in suspects and _is_hard_coded(subject, reference, transcript, source):
        suspects.append(HARD_CODED)
    elif values is None:
        unexplained = {o.id for o in failed if not proven[o.id]}
        caused = can_cause([*exceptions, *suspects], unexplained, {o.id for o in failed}, checks_failed_by)
        # An attempt that changes its argument computes with another one; one that answers by chance, or with weights
        # of its own, matches nothing.
        caused = caused or MUTATED in suspects or learns_more(reference, transcript)
        if not caused and not _answers_by_chance(subject, exchanges):
            exceptions, suspects, also = [], [], [*exceptions, *suspects]
    # What is not written yet says nothing of what is, so that it comes last.
    order = [*exceptions, *named, *suspects, *(name for o in unfinished if (name := proven[o.id]))]
    return Diagnosis(
        tuple(_diagnosed(bank, id_, named.get(id_, ())) for id_ in dict.fromkeys(order)),
        tuple(_diagnosed(bank, id_, ()) for id_ in dict.fromkeys(also)),
    )


def _follows(
    failed: CheckOutcome, values: tuple[Fault, ...] | None, reference: CachedRunner, transcript: Sequence[Exchange]
) -> bool:
    """Whether a fault in the gradients is a consequence: the one mutant that explains the values has the same gradients."""
    asked = [e for e in transcript if e.check == failed.id]
    if failed.layer != Layer.GRADIENTS or not asked or not values or len(values) > 1:
        return False
    runner = reference.of(values[0].mutant.namespace)
    return all(agree(e.reply, runner.execute(e.call)) for e in asked)


def _is_of_more(
    values: tuple[Fault, ...] | None,
    refused: Sequence[Refused],
    exchanges: Sequence[Exchange],
    reference: CachedRunner,
    proven: Collection[str],
) -> bool:
    """Whether what explains the values says more than that allowed inputs are refused, which mutants do, too."""
    if values is None:
        return False
    ids = {fault.mutant.id for fault in values}
    if ids <= {*proven} or (ids == {UNDIVIDED} and any(each.guard.divides for each in refused)):
        return True
    others = [e for e in exchanges if all(e is not each.exchange for each in refused)]
    others = [e for e in others if not refuses_in_its_own_way(e, reference)]
    return any(not agree(e.reply, reference.execute(e.call)) for e in others)


def _answers(exchanges: Sequence[Exchange]) -> bool:
    """Whether a function that raised in some of these calls answered more than a few others."""
    raised = {target_of(e.call) for e in exchanges if e.reply.raised is not None}
    replies = [e.reply for e in exchanges if target_of(e.call) in raised]
    return MANY * sum(bool(reply.outputs) for reply in replies) > len(replies)


def _is_hard_coded(subject: BatchRunner, reference: LocalRunner, transcript: Sequence[Exchange], source: str) -> bool:
    """Whether the attempt has fixed sizes: the recorded answers show it, or further calls do."""
    if has_fixed_size(reference, transcript):
        return True
    try:
        return works_for_another_rank(subject, reference, transcript) or works_for_its_own_sizes(
            subject, reference, transcript, source
        )
    except AttemptEnded:
        return False


def _answers_by_chance(subject: BatchRunner, exchanges: Iterable[Exchange]) -> bool:
    """Whether another random seed gives other values: then no mutant can have the same ones."""
    for exchange in exchanges:
        if any(out.tensor is not None for out in exchange.reply.outputs):
            once_more = dataclasses.replace(exchange.call, seed=exchange.call.seed + 1)
            try:
                (reply,) = replies_of(subject, [once_more])
            except AttemptEnded:
                return False
            return not agree(exchange.reply, reply)
    return False


def _order_and_more(
    bank: Bank, table: Callable[[], Table], subject: ByName, reference: CachedRunner, transcript: Sequence[Exchange]
) -> Diagnosis:
    """The diagnosis of a wrong order of arguments, and of what else is wrong if they are passed by name."""
    values = explain_values(bank, table(), subject, reference, subject.asked_again(transcript))
    others = [f for f in values or () if f.mutant.id != INTERFACE]
    named = (_diagnosed(bank, f.mutant.id, f.alternatives) for f in others)
    return Diagnosis((_diagnosed(bank, INTERFACE, ()), *named))


def _by_outputs(
    bank: Bank,
    table: Callable[[], Table],
    subject: BatchRunner,
    reference: CachedRunner,
    exchanges: Sequence[Exchange],
) -> tuple[Fault, ...] | None:
    """What explains the outputs without the gradients. One mistake written in two ways may have the same outputs and
    other gradients: NaN spreads further through one softmax than through another.
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


def _returns_nothing(exchanges: Iterable[Exchange]) -> bool:
    """Whether several functions were called and all returned None, as functions without a body do.

    If it is only one function, it more likely lacks its `return`.
    """
    answered = [e for e in exchanges if e.reply.outputs]
    kinds = {out.came for e in answered for out in e.reply.outputs}
    return kinds == {"NoneType"} and len({e.call.subject for e in answered if isinstance(e.call.subject, str)}) > 1


def diagnosed(bank: Bank, id_: str) -> Diagnosis:
    """The diagnosis for a misconception that is known without any check."""
    return Diagnosis((_diagnosed(bank, id_, ()),))


def _to_explain(
    failed: Sequence[CheckOutcome], proven: dict[str, str], transcript: Iterable[Exchange]
) -> list[Exchange]:
    """The exchanges whose values mutants must explain: all but those of checks whose failure is explained already.

    Empty if no failing check is among them. Failing checks come first, gradients last.
    """
    layers = {o.id: o.layer for o in failed}
    elsewhere = {id_ for id_, name in proven.items() if name}
    exchanges = [e for e in transcript if e.check not in elsewhere]
    if not any(e.check in layers for e in exchanges):
        return []
    return sorted(exchanges, key=lambda e: _search_order(e, layers))


def _search_order(exchange: Exchange, layers: dict[str, Layer]) -> tuple[bool, bool, bool, int]:
    """What rules out mutants soonest comes first: values before exceptions, failing checks, and gradients last."""
    return (
        exchange.reply.raised is not None,
        exchange.check not in layers,
        exchange.call.cotangent is not None,
        layers.get(exchange.check, 0),
    )


def _diagnosed(bank: Bank, id_: str, alternatives: tuple[str, ...]) -> Diagnosed:
    text = bank.texts.get(id_)
    if text is None:
        return Diagnosed(id=id_, title=id_.replace("_", " "), hint="", alternatives=alternatives)
    return Diagnosed(id=id_, title=text.title, hint=text.hints[0], alternatives=alternatives)
