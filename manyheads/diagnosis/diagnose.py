"""Name the misconceptions that explain an attempt's answers. Nothing is named without proof."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from ..box.connection import AttemptEnded
from ..checks.explain import is_unfinished
from ..checks.implementation import LocalRunner
from ..checks.local import CachedRunner, Replays
from ..checks.marks import Layer
from ..checks.outcome import CheckOutcome
from ..checks.recording import BatchRunner, Exchange, replies_of, target_of
from ..result import Diagnosed
from ..submission.unwritten import UNTOUCHED, is_unwritten, unwritten_names
from .agree import agree, is_comparable
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
Faults = tuple[Fault, ...] | None  # that explain values; None where nothing does


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
    """Name the misconceptions of an attempt.

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
    reference = CachedRunner(reference.namespace, reference.device, only_values=True, replays=replays or Replays())
    case = _Case(bank, table, subject, reference, failed, tuple(transcript), source or "")
    try:
        if takes_another_order(subject, reference, _of_failed(failed, case.comparable)):
            return _order_and_more(bank, table, ByName(subject, reference.namespace), reference, case.comparable)
        found = _behind_guards(case, _explained(case))
    except AttemptEnded:
        found = _Explanation(None)
    return _diagnosis(case, _without_contradicted(case, found), checks_failed_by)


@dataclass
class _Case:
    """A failed attempt, and what is to be explained of it.

    everything: all exchanges with its checks. comparable: those whose values a mutant's can be held against, of functions
    that are written. proven: for each failed check what it proves by itself, or "".
    """

    bank: Bank
    table: Callable[[], Table]
    subject: BatchRunner
    reference: CachedRunner
    failed: Sequence[CheckOutcome]
    everything: Sequence[Exchange]
    source: str

    def __post_init__(self) -> None:
        unwritten = unwritten_names(self.source)
        empty = {e.check for e in self.everything if target_of(e.call) in unwritten}
        self.mutates = any(e.reply.mutated for e in self.everything)
        self.comparable = [e for e in self.everything if is_comparable(e.call) and target_of(e.call) not in unwritten]
        self.proven = {
            o.id: UNTOUCHED if o.id in empty else o.suspect or proven_by(o.raised, self.mutates) for o in self.failed
        }

    def to_explain(self, exchanges: Iterable[Exchange]) -> list[Exchange]:
        """Return those of these exchanges whose values mutants must explain."""
        return _to_explain(self.failed, self.proven, exchanges)

    def explained_by_mutants(self, exchanges: Sequence[Exchange], pairs: int = CONFIRMED_PAIRS) -> Faults:
        return (
            explain_values(self.bank, self.table(), self.subject, self.reference, exchanges, pairs) if exchanges else ()
        )


@dataclass(frozen=True)
class _Explanation:
    """What explains the values of an attempt.

    values: None where nothing does. exchanges: those that are explained. failing: how the wrong answers differ.
    is_equal: whether the attempt is right where two sizes are equal. wrong_axis: whether that is all that explains it.
    """

    values: Faults
    exchanges: Sequence[Exchange] = ()
    failing: str = ""
    is_equal: bool = False
    wrong_axis: bool = False


def _explained(case: _Case) -> _Explanation:
    """Return what explains the values: mutants on all exchanges, sizes, or mutants on a part of them. Raises AttemptEnded."""
    subject, reference = case.subject, case.reference
    exchanges, equal = case.to_explain(case.comparable), EqualSizes()
    failing = how_it_fails(reference, exchanges)
    # Exceptions alone many mistakes have in common; an answer of another shape is a mutant's, or nobody's.
    if failing == "raised":
        equal = ask_where_sizes_are_equal(subject, reference, exchanges)
        # All attempts are asked alike there, and many mutants with them.
        held = [dataclasses.replace(e, call=reference.replays.hold(e.call)) for e in equal.answers]
        exchanges = [*held, *exchanges]
    # Who is right as soon as two sizes are equal has one fault.
    values = case.explained_by_mutants(exchanges, 0 if equal.works else CONFIRMED_PAIRS)
    if values is None and failing == "shape":
        equal = ask_where_sizes_are_equal(subject, reference, exchanges)
    if values is None and equal.works:
        return _Explanation((), exchanges, failing, is_equal=True, wrong_axis=True)
    if values is None:
        values = _explained_in_part(case, exchanges)
    return _Explanation(values, exchanges, failing, is_equal=equal.works)


def _explained_in_part(case: _Case, exchanges: Sequence[Exchange]) -> Faults:
    """Return what explains the outputs alone, all calls in their order, or one function after the other."""
    names = {*case.proven.values()} - {""}
    values: Faults
    if names:
        values = explain_in_order(case.bank, {*case.proven.values()}, case.reference, case.everything)
    else:
        values = _by_outputs(case.bank, case.table, case.subject, case.reference, exchanges)
    if values is None:
        values = explain_functions(case.bank, case.table(), case.subject, case.reference, exchanges)
    return values


def _behind_guards(case: _Case, found: _Explanation) -> _Explanation:
    """Return what explains the calls that a guard lets through, where it refuses allowed inputs and no name says more."""
    refused = refused_by_guards(case.comparable, case.reference, case.source)
    if not refused:
        return found
    accepting = {e.check for e in case.everything if e.reply.raised is None and case.reference.execute(e.call).raised}
    follows = any(case.proven[o.id] and o.raised is None and o.id not in accepting for o in case.failed)
    if follows or _is_of_more(found.values, refused, found.exchanges, case.reference, case.proven.values()):
        return found
    by_guards = [each.exchange for each in refused]
    case.proven |= {o.id: REFUSES for o in case.failed if o.raised in [e.reply.raised for e in by_guards]}
    exchanges = case.to_explain(e for e in case.comparable if all(e is not each for each in by_guards))
    return dataclasses.replace(found, values=case.explained_by_mutants(exchanges), exchanges=exchanges)


def _without_contradicted(case: _Case, found: _Explanation) -> _Explanation:
    """Return the explanation without names that something else speaks against."""
    values = found.values
    if not case.mutates and any(fault.mutant.id == MUTATED for fault in values or ()):
        values = None  # the same complaint of autograd, of another tensor
    if found.failing == "raised" and values and not found.is_equal:
        values = without(WRONG_AXIS, values)
    if found.failing == "raised" and values and not (has_written_size(case.source) or _answers(found.exchanges)):
        values = without(HARD_CODED, values)
    return dataclasses.replace(found, values=values)


def _diagnosis(
    case: _Case, found: _Explanation, checks_failed_by: Callable[[], Mapping[str, Sequence[Set[str]]]]
) -> Diagnosis:
    """Return the names in their order: what exceptions prove, what explains the values, what checks prove, what is not written."""
    values, proven = found.values, case.proven
    named = {fault.mutant.id: fault.alternatives for fault in values or ()}
    unfinished = [o for o in case.failed if proven[o.id] == UNTOUCHED or (o.raised and is_unfinished(o.raised))]
    written = [o for o in case.failed if proven[o.id] and o not in unfinished]
    exceptions = [proven[o.id] for o in written if o.raised is not None]
    suspects = _suspects(case, found, written)
    also: list[str] = []
    if values is None and not _are_the_cause(case, found, exceptions, suspects, checks_failed_by):
        exceptions, suspects, also = [], [], [*exceptions, *suspects]
    # What is not written yet says nothing of what is, so that it comes last.
    order = [*exceptions, *named, *suspects, *(name for o in unfinished if (name := proven[o.id]))]
    return Diagnosis(
        tuple(_diagnosed(case.bank, id_, named.get(id_, ())) for id_ in dict.fromkeys(order)),
        tuple(_diagnosed(case.bank, id_, ()) for id_ in dict.fromkeys(also)),
    )


def _suspects(case: _Case, found: _Explanation, written: Sequence[CheckOutcome]) -> list[str]:
    """Return what checks prove by their answers, in the order of their layers, and sizes that prove themselves."""
    values = found.values
    suspects = [
        case.proven[o.id]
        for o in sorted(written, key=lambda o: o.layer)
        if o.raised is None and not _follows(o, values, case.reference, case.comparable)
    ]
    # A check that tried a few sizes may have taken the one for the other.
    if found.wrong_axis or any(fault.mutant.id == WRONG_AXIS for fault in values or ()):
        suspects = [s for s in suspects if s != HARD_CODED]
    if found.wrong_axis:
        return [WRONG_AXIS, *suspects]
    if not values and _returns_nothing(case.comparable):
        return [UNTOUCHED]
    refuses = any(case.proven[o.id] == REFUSES for o in written if o.raised is not None)
    if values is not None or refuses or HARD_CODED in suspects:
        return suspects
    is_fixed = _is_hard_coded(case.subject, case.reference, case.comparable, case.source)
    return [*suspects, HARD_CODED] if is_fixed else suspects


def _are_the_cause(
    case: _Case,
    found: _Explanation,
    exceptions: Sequence[str],
    suspects: Sequence[str],
    checks_failed_by: Callable[[], Mapping[str, Sequence[Set[str]]]],
) -> bool:
    """Return whether what is proved may be why the values are wrong, which no mutant explains."""
    # What a guard keeps from being run need not be explained; a size or a text that proves itself is the cause.
    if (
        REFUSES in exceptions
        or suspects == [UNTOUCHED]
        or (HARD_CODED in suspects and HARD_CODED not in case.proven.values())
    ):
        return True
    unexplained = {o.id for o in case.failed if not case.proven[o.id]}
    if can_cause([*exceptions, *suspects], unexplained, {o.id for o in case.failed}, checks_failed_by):
        return True
    # An attempt that changes its argument computes with another one; one that answers by chance, or with weights of its
    # own, matches nothing.
    return (
        MUTATED in suspects
        or learns_more(case.reference, case.comparable)
        or _answers_by_chance(case.subject, found.exchanges)
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
