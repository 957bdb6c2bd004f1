"""Name the misconceptions that explain an attempt's answers. Nothing is named without proof."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from ..box.connection import AttemptEnded
from ..checks.explain import is_unfinished
from ..checks.implementation import LocalRunner
from ..checks.local import CachedRunner, Replays
from ..checks.marks import Layer
from ..checks.outcome import CheckOutcome
from ..checks.transcript import BatchRunner, Exchange, replies_of
from ..submission.unwritten import UNTOUCHED, is_unwritten
from .agree import agree
from .bank import Bank
from .diagnosis import Diagnosis, Fault, Faults, in_order, named, naming
from .equal_sizes import WRONG_AXIS
from .explain_parts import ByName, takes_another_order
from .explanation import Case, Explanation, explanation_of, without_contradicted
from .fixed_sizes import HARD_CODED, has_fixed_size, works_for_its_own_sizes
from .guards import REFUSES
from .proofs import MUTATED, can_cause, learns_more
from .ranks import lines_that_turn_all_axes, works_for_another_rank
from .search import Mutants, explain_values
from .table import Table

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
    """Name the misconceptions of an attempt.

    A mutant with the same values explains values. In addition, a misconception is named that a check proves by itself
    (its suspect) or that an exception proves.

    Args:
        bank: the exercise's mutants, and the words for their misconceptions.
        table: called only if the table is needed.
        subject: the attempt, to be asked the table's probes.
        reference: the solution.
        outcomes: how the checks ended.
        transcript: what they asked, and the replies.
        source: the attempt's text, for the sizes that it contains and for whether there is anything in it; None where it
            is not at hand.
        replays: of earlier attempts.
        checks_failed_by: for each misconception the checks that each of its mutants fails; empty if that is not known.
    """
    failed = [o for o in outcomes if o.outcome not in ("passed", "skipped")]
    if not failed:
        return Diagnosis()
    if not any(o.outcome == "passed" for o in outcomes) and source is not None and is_unwritten(source):
        return naming(bank.texts, UNTOUCHED)
    reference = CachedRunner(reference.namespace, reference.device, only_values=True, replays=replays or Replays())
    mutants = Mutants(bank, table, subject, reference)
    case = Case(mutants, failed, tuple(transcript), source or "", checks_failed_by)
    ids = {o.id for o in failed}
    try:
        if takes_another_order(subject, reference, [e for e in case.comparable if e.check in ids]):
            return _order_and_more(mutants, case.comparable)
        explanation = explanation_of(case)
    except AttemptEnded:
        explanation = Explanation(None)
    return _diagnosis(case, without_contradicted(case, explanation))


def _diagnosis(case: Case, explanation: Explanation) -> Diagnosis:
    """Return the names in their order: what exceptions prove, what explains the values, what checks prove, what is not written."""
    values, proven = explanation.values, case.proven
    unfinished = [o for o in case.failed if proven[o.id] == UNTOUCHED or (o.raised and is_unfinished(o.raised))]
    written = [o for o in case.failed if proven[o.id] and o not in unfinished]
    exceptions = [proven[o.id] for o in written if o.raised is not None]
    suspects = _suspects(case, explanation, written)
    unwritten = (name for o in unfinished if (name := proven[o.id]))
    is_cause = values is not None or _are_the_cause(case, explanation, exceptions, suspects)
    return in_order(case.mutants.bank.texts, exceptions, values or (), suspects, unwritten, is_cause)


def _suspects(case: Case, explanation: Explanation, written: Sequence[CheckOutcome]) -> list[str]:
    """Return what checks prove by their answers, in the order of their layers, and sizes that prove themselves."""
    values = explanation.values
    suspects = [
        case.proven[o.id]
        for o in sorted(written, key=lambda o: o.layer)
        if o.raised is None and not _follows(o, case, values)
    ]
    # A check that tried a few sizes may have taken the one for the other.
    if explanation.wrong_axis or any(fault.id == WRONG_AXIS for fault in values or ()):
        suspects = [s for s in suspects if s != HARD_CODED]
    if explanation.wrong_axis:
        return [WRONG_AXIS, *suspects]
    if not values and _returns_nothing(case.comparable):
        return [UNTOUCHED]
    refuses = any(case.proven[o.id] == REFUSES for o in written if o.raised is not None)
    if values is not None or refuses or HARD_CODED in suspects:
        return suspects
    return [*suspects, HARD_CODED] if _is_hard_coded(case) else suspects


def _are_the_cause(case: Case, explanation: Explanation, exceptions: Sequence[str], suspects: Sequence[str]) -> bool:
    """Return whether what is proved may be why the values are wrong, which no mutant explains."""
    # What a guard keeps from being run need not be explained; a size or a text that proves itself is the cause.
    if (
        REFUSES in exceptions
        or suspects == [UNTOUCHED]
        or (HARD_CODED in suspects and HARD_CODED not in case.proven.values())
    ):
        return True
    unexplained = {o.id for o in case.failed if not case.proven[o.id]}
    if can_cause([*exceptions, *suspects], unexplained, {o.id for o in case.failed}, case.checks_failed_by):
        return True
    # An attempt that changes its argument computes with another one; one that answers by chance, or with weights of its
    # own, matches nothing.
    return (
        MUTATED in suspects
        or learns_more((e.reply, case.reference.execute(e.call).gradients) for e in case.comparable)
        or _answers_by_chance(case.mutants.subject, explanation.exchanges)
    )


def _follows(failed: CheckOutcome, case: Case, values: Faults) -> bool:
    """Return whether a fault in the gradients is a consequence: the one mutant that explains the values has the same gradients."""
    asked = [e for e in case.comparable if e.check == failed.id]
    if failed.layer != Layer.GRADIENTS or not asked or not values or len(values) > 1:
        return False
    runner = case.reference.of(values[0].namespace)
    return all(agree(e.reply, runner.execute(e.call)) for e in asked)


def _is_hard_coded(case: Case) -> bool:
    """Return whether the attempt has fixed sizes: the recorded answers show it, or further calls do."""
    subject, reference, transcript = case.mutants.subject, case.reference, case.comparable
    if has_fixed_size(reference, transcript):
        return True
    try:
        turned = lines_that_turn_all_axes(case.source)
        plain = [e for e in transcript if not (e.reply.raised and e.reply.raised.line in turned)]
        return works_for_another_rank(subject, reference, plain) or works_for_its_own_sizes(
            subject, reference, transcript, case.source
        )
    except AttemptEnded:
        return False


def _answers_by_chance(subject: BatchRunner, exchanges: Iterable[Exchange]) -> bool:
    """Return whether another random seed gives other values: then no mutant can have the same ones."""
    for exchange in exchanges:
        if any(out.tensor is not None for out in exchange.reply.outputs):
            once_more = dataclasses.replace(exchange.call, seed=exchange.call.seed + 1)
            try:
                (reply,) = replies_of(subject, [once_more])
            except AttemptEnded:
                return False
            return not agree(exchange.reply, reply)
    return False


def _order_and_more(mutants: Mutants, transcript: Sequence[Exchange]) -> Diagnosis:
    """Return the diagnosis of a wrong order of arguments, and of what else is wrong if they are passed by name."""
    bank, subject = mutants.bank, ByName(mutants.subject, mutants.reference.namespace)
    values = explain_values(dataclasses.replace(mutants, subject=subject), subject.asked_again(transcript))
    others = [f for f in values or () if f.id != INTERFACE]
    return Diagnosis(tuple(named(bank.texts, f.id, f.alternatives) for f in (Fault(INTERFACE), *others)))


def _returns_nothing(exchanges: Iterable[Exchange]) -> bool:
    """Return whether several functions were called and all returned None, as functions without a body do.

    If it is only one function, it more likely lacks its `return`.
    """
    answered = [e for e in exchanges if e.reply.outputs]
    kinds = {out.came for e in answered for out in e.reply.outputs}
    return kinds == {"NoneType"} and len({e.call.subject for e in answered if isinstance(e.call.subject, str)}) > 1
