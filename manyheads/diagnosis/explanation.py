"""What explains the values of a failed attempt: mutants, sizes, or mutants on a part of its calls."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from ..box.worker.answers import Reply
from ..checks.explain import is_refusal
from ..checks.implementation import LocalRunner
from ..checks.local import CachedRunner
from ..checks.marks import Layer
from ..checks.outcome import CheckOutcome
from ..checks.transcript import Exchange, target_of
from ..submission.unwritten import UNTOUCHED, unwritten_names
from .agree import agree, is_comparable
from .diagnosis import Fault, Faults, says_little, without
from .equal_sizes import WRONG_AXIS, EqualSizes, ask_where_sizes_are_equal, how_it_fails
from .explain_parts import explain_functions, explain_in_order
from .fixed_sizes import HARD_CODED, has_written_size
from .guards import REFUSES, UNDIVIDED, Refused, refused_by_guards
from .proofs import MUTATED, proven_by
from .search import CONFIRMED_PAIRS, Mutants, explain_values, refuses_in_its_own_way

# How many pairs a search without gradients replays: its probes rule out few, and none of 115 such searches found a pair.
PAIRS_BY_OUTPUTS = 12


@dataclass
class Case:
    """A failed attempt, and what is to be explained of it.

    everything: all exchanges with its checks. comparable: those whose values a mutant's can be held against, of functions
    that are written. proven: for each failed check what it proves by itself, or "".
    """

    mutants: Mutants
    failed: Sequence[CheckOutcome]
    everything: Sequence[Exchange]
    source: str
    checks_failed_by: Callable[[], Mapping[str, Sequence[Set[str]]]]

    def __post_init__(self) -> None:
        unwritten = unwritten_names(self.source)
        empty = {e.check for e in self.everything if target_of(e.call) in unwritten}
        self.mutates = any(e.reply.mutated for e in self.everything)
        self.comparable = [e for e in self.everything if is_comparable(e.call) and target_of(e.call) not in unwritten]
        self.proven = {
            o.id: UNTOUCHED if o.id in empty else o.suspect or proven_by(o.raised, self.mutates) for o in self.failed
        }

    @property
    def reference(self) -> CachedRunner:
        """The solution."""
        return self.mutants.reference

    def is_right(self, exchange: Exchange) -> bool:
        """Return whether the attempt answers as the reference does."""
        return agree(exchange.reply, self.reference.execute(exchange.call))

    def to_explain(self, exchanges: Iterable[Exchange]) -> list[Exchange]:
        """Return the exchanges whose values mutants must explain: all but those of checks whose failure is explained already.

        Empty if no failing check is among them. Failing checks come first, gradients last.
        """
        layers = {o.id: o.layer for o in self.failed}
        left = [e for e in exchanges if not self.proven.get(e.check)]
        if not any(e.check in layers for e in left):
            return []
        return sorted(left, key=lambda e: _search_order(e, layers))


@dataclass(frozen=True)
class Explanation:
    """What explains the values of an attempt.

    values: None where nothing does. exchanges: those that are explained. failing: how the wrong answers differ.
    is_equal: whether the attempt is right where two sizes are equal. wrong_axis: whether that is all that explains it.
    """

    values: Faults
    exchanges: Sequence[Exchange] = ()
    failing: str = ""
    is_equal: bool = False
    wrong_axis: bool = False


def explanation_of(case: Case) -> Explanation:
    """Return what explains the values of an attempt, or of those of its calls that a guard lets through. Raises AttemptEnded."""
    return _behind_guards(case, _explained(case))


def _explained(case: Case) -> Explanation:
    """Return what explains the values: mutants on all exchanges, sizes, or mutants on a part of them. Raises AttemptEnded."""
    subject, reference = case.mutants.subject, case.reference
    exchanges, equal = case.to_explain(case.comparable), EqualSizes()
    failing = how_it_fails(reference, exchanges)
    # Exceptions alone many mistakes have in common; an answer of another shape is a mutant's, or nobody's.
    if failing == "raised":
        equal = ask_where_sizes_are_equal(subject, reference, exchanges)
        # All attempts are asked alike there, and many mutants with them.
        held = [dataclasses.replace(e, call=reference.replays.hold(e.call)) for e in equal.answers]
        exchanges = [*held, *exchanges]
    # Who is right as soon as two sizes are equal has one fault.
    values = explain_values(case.mutants, exchanges, 0 if equal.works else CONFIRMED_PAIRS)
    if values is None and failing == "shape":
        equal = ask_where_sizes_are_equal(subject, reference, exchanges)
    if values is None and equal.works:
        return Explanation((), exchanges, failing, is_equal=True, wrong_axis=True)
    if values is None:
        values = _explained_in_part(case, exchanges)
    return Explanation(values, exchanges, failing, is_equal=equal.works)


def _explained_in_part(case: Case, exchanges: Sequence[Exchange]) -> Faults:
    """Return what explains the outputs alone, all calls in their order, or one function after the other."""
    proven = {*case.proven.values()}
    if proven - {""}:
        values = explain_in_order(case.mutants.bank, proven, case.reference, case.everything)
    else:
        values = _by_outputs(case.mutants, exchanges)
    return explain_functions(case.mutants, exchanges) if values is None else values


def _behind_guards(case: Case, explanation: Explanation) -> Explanation:
    """Return what explains the calls that a guard lets through, where it refuses allowed inputs and no name says more."""
    refused = refused_by_guards(case.comparable, case.reference, case.source)
    if not refused:
        return explanation
    accepting = {
        e.check
        for e in case.everything
        if case.reference.execute(e.call).raised and not (e.reply.raised and is_refusal(e.reply.raised))
    }
    follows = any(case.proven[o.id] and o.raised is None and o.id not in accepting for o in case.failed)
    if follows or _is_of_more(case, explanation, refused):
        return explanation
    by_guards = [each.exchange for each in refused]
    case.proven |= {o.id: REFUSES for o in case.failed if o.raised in [e.reply.raised for e in by_guards]}
    if any(each.guard.inverted for each in refused):  # what it lets through fails somewhere else
        case.proven |= {o.id: REFUSES for o in case.failed if o.raised and o.suspect}
    exchanges = case.to_explain(e for e in case.comparable if all(e is not guard for guard in by_guards))
    return dataclasses.replace(explanation, values=explain_values(case.mutants, exchanges), exchanges=exchanges)


def without_contradicted(case: Case, explanation: Explanation) -> Explanation:
    """Return the explanation without names that something else speaks against."""
    values = explanation.values
    if not case.mutates and any(fault.id == MUTATED for fault in values or ()):
        values = None  # the same complaint of autograd, of another tensor
    if explanation.failing == "raised" and values and not explanation.is_equal:
        values = without(WRONG_AXIS, values)
    if explanation.failing == "raised" and values and not has_written_size(case.source):
        values = without(HARD_CODED, values)
    if values and says_little(values, all(e.reply.raised or case.is_right(e) for e in explanation.exchanges)):
        values = None
    if values and any(_has_other_parameters(case, fault) for fault in values):
        values = None
    return dataclasses.replace(explanation, values=values)


def _has_other_parameters(case: Case, fault: Fault) -> bool:
    """Return whether a module of the mutant has parameters that neither the attempt's has nor the reference's."""
    both = [LocalRunner(names) for names in (case.reference.namespace, fault.namespace)]
    for exchange in (e for e in case.everything if e.call.only_build):
        right, its = (_parameters(runner.execute(exchange.call)) for runner in both)
        if its not in (right, _parameters(exchange.reply)):
            return True
    return False


def _parameters(reply: Reply) -> list[str]:
    return sorted(name for module in reply.modules for name in module.parameters)


def _is_of_more(case: Case, explanation: Explanation, refused: Sequence[Refused]) -> bool:
    """Return whether what explains the values says more than that allowed inputs are refused, which mutants do, too."""
    if explanation.values is None:
        return False
    ids = {fault.id for fault in explanation.values}
    if ids <= {*case.proven.values()} or (ids == {UNDIVIDED} and any(each.guard.divides for each in refused)):
        return True
    others = [e for e in explanation.exchanges if all(e is not each.exchange for each in refused)]
    return not all(case.is_right(e) for e in others if not refuses_in_its_own_way(e, case.reference))


def _by_outputs(mutants: Mutants, exchanges: Sequence[Exchange]) -> Faults:
    """Return what explains the outputs without the gradients.

    One mistake written in two ways may have the same outputs and other gradients: NaN spreads further through one softmax
    than through another.
    """
    if all(e.call.cotangent is None for e in exchanges):
        return None
    outputs = [_without_gradients(e) for e in exchanges]
    return explain_values(mutants, outputs, PAIRS_BY_OUTPUTS)


def _without_gradients(exchange: Exchange) -> Exchange:
    if exchange.call.cotangent is None or exchange.reply.raised is not None:
        return exchange
    call = dataclasses.replace(exchange.call, cotangent=None, second=False)
    return dataclasses.replace(exchange, call=call, reply=dataclasses.replace(exchange.reply, gradients={}))


def _search_order(exchange: Exchange, layers: dict[str, Layer]) -> tuple[bool, bool, bool, int]:
    """Return the key by which exchanges are ordered, so that what rules out mutants soonest comes first."""
    return (
        exchange.reply.raised is not None,
        exchange.check not in layers,
        exchange.call.cotangent is not None,
        layers.get(exchange.check, 0),
    )
