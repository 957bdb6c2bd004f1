"""Name the misconceptions that an attempt's answers show, held against recorded answers of mutants."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set

from ..checks.explain import is_unfinished
from ..checks.transcript import target_of
from ..submission.unwritten import UNTOUCHED, unwritten_names
from .broken_aspect import proven_beside, proven_by_aspect
from .comparison import Comparison
from .diagnosis import Diagnosis, Fault, in_order
from .dropout_extremes import is_of_copies
from .explain_recorded import explain, explain_functions, explain_nearly, without_unwritten_sizes
from .fingerprint import has_no_numbers
from .fixed_sizes import HARD_CODED, has_written_size
from .guards import REFUSES, UNDIVIDED, Guard, guards_of
from .other_device import looks_at_no_numbers, on_another_device
from .parameters import proven_by_parameters, that_follow, without_more
from .proofs import can_cause, proven_by, proven_by_answer
from .ranks import lines_that_turn_all_axes, proven_by_rank
from .recorded_answers import Answered
from .recording import Fingerprints, differs, facets_of, is_silent
from .same_places import proven_by_place
from .varying_answers import proven_by_chance


def diagnose_from_recordings(fingerprints: Fingerprints, seen: Mapping[int, Comparison], source: str) -> Diagnosis:
    """Name what exceptions and facets prove, then the mutants that answer as the attempt does.

    What reaches a function that is not written yet says nothing of those that are: it is named last, and explains nothing.

    Args:
        fingerprints: the exercise's recording.
        seen: the replies, by the number of the recorded call.
        source: the attempt's text, "" where it is not at hand.
    """
    case = _Case(fingerprints, seen, source)
    explained = explain(case.answered, case.raised.keys())
    explained = explained or explain_nearly(case.answered) or explain_functions(case.answered)
    explained = without_unwritten_sizes(explained, case.answered, source)
    explained = _behind_guards(case, explained)
    explained = explained or _beside_parameters(case)
    if explained:
        beside = proven_beside(fingerprints, case.written, {fault.id for fault in explained})
        case.proven = {**beside, **case.proven}
    else:
        _prove_more(case)
    return _diagnosis(case, explained)


class _Case:
    """An attempt's replies, and what of them is to be explained.

    unfinished: the calls that reach a function which is not written. written: the others, by their numbers.
    asked: the calls that are compared with mutants'. unexplained: those in which the attempt differs from the reference.
    raised, answers: the misconception that an exception, or an answer, proves by itself; raised is part of proven.
    parameters: the same of parameters that are missing or too many. hides_layers: whether it computes with weights of its own.
    """

    def __init__(self, fingerprints: Fingerprints, seen: Mapping[int, Comparison], source: str) -> None:
        self.fingerprints, self.source = fingerprints, source
        self.empty = unwritten_names(source)
        self.mutates = any(comparison.reply.mutated for comparison in seen.values())
        self.unfinished = {i: e for i, e in seen.items() if _is_unfinished(e) or target_of(e.call) in self.empty}
        written = {i: e for i, e in seen.items() if i not in self.unfinished}
        idle = {i for i, e in written.items() if _says_no_more(e, written.values())}
        self.written = {i: e for i, e in written.items() if i not in idle}
        calls = {call for check in fingerprints.content.checks for call in check.calls}
        self.asked: Set[int] = calls - idle - self.unfinished.keys()
        self.raised = {i: name for i, e in self.written.items() if (name := _proven(e, self.mutates))}
        answers = {i: proven_by_answer(fingerprints, i, e) for i, e in self.written.items() if i not in self.raised}
        self.answers = {i: name for i, name in answers.items() if name}
        self.proven = {**proven_by_chance(fingerprints, self.written), **self.raised, **self.answers}
        self.unexplained: Mapping[int, Comparison] = {
            i: e for i, e in self.written.items() if differs(fingerprints, i, e.found)
        }
        self._leave_out(i for i, e in self.unexplained.items() if self._ends_before_it_can_refuse(e))
        if any(not is_of_copies(comparison.call) for comparison in self.unexplained.values()):
            self._leave_out(_of_several_faults(fingerprints, self.unexplained))
        self.parameters: dict[int, str] = {}
        self.hides_layers = False

    @property
    def answered(self) -> Answered:
        """What is to be explained by mutants."""
        return Answered(self.fingerprints, self.written, self.unexplained, self.asked)

    def _leave_out(self, calls: Iterable[int]) -> None:
        left = self.answered.without(frozenset(calls))
        self.unexplained, self.asked = left.wrong, left.asked

    def _ends_before_it_can_refuse(self, seen: Comparison) -> bool:
        """Return whether what is due is a refusal, and an exception came that proves a mistake in other calls, too."""
        raised = seen.reply.raised if seen.right.raised == "refused" else None
        return raised is not None and proven_by(raised, self.mutates) in {*self.raised.values()}

    def without_turned(self) -> dict[int, Comparison]:
        """Return the calls of functions that are written, without those that stopped at a `.T`."""
        turned = lines_that_turn_all_axes(self.source)
        return {i: e for i, e in self.written.items() if not (e.reply.raised and e.reply.raised.line in turned)}


def _behind_guards(case: _Case, explained: Sequence[Fault]) -> Sequence[Fault]:
    """Return what explains the calls that a guard lets through, where it refuses allowed inputs and no name says more."""
    refused = _refused_by_guards(case.written, case.source)
    follows = any(i not in case.raised and case.written[i].right.raised is None for i in case.proven)
    if not refused or follows:
        return explained
    others = [i for i in case.unexplained if i not in case.answers]
    if _is_of_more(explained, refused, others, case.answers.values()):
        return explained
    case.proven |= dict.fromkeys(refused, REFUSES)
    case.raised |= dict.fromkeys(refused, REFUSES)
    # A guard the wrong way round lets through what it should refuse, which then fails somewhere else.
    inverted = any(guard.inverted for guard in refused.values())
    let_through = {
        i
        for i, e in case.unexplained.items()
        if inverted and e.reply.raised and "refused" == e.right.raised != e.found.raised
    }
    left = case.answered.without(refused.keys() | let_through)
    return explain(left, case.raised.keys()) if left.wrong else ()


def _beside_parameters(case: _Case) -> Sequence[Fault]:
    """Return what explains the values as though no parameter were too many, where those prove a mistake."""
    case.parameters = proven_by_parameters(case.fingerprints, case.written)
    beside = without_more(case.written, case.parameters)
    differing = {i: e for i, e in beside.items() if i in case.unexplained and differs(case.fingerprints, i, e.found)}
    left = Answered(case.fingerprints, beside, differing, case.asked)
    explained = explain(left, case.raised.keys()) if differing else ()
    if explained:
        case.proven = {**case.parameters, **case.proven}
    return explained


def _prove_more(case: _Case) -> None:
    """Take down what ranks, places and aspects prove where nobody's numbers are the attempt's."""
    placed = {
        **proven_by_place(case.fingerprints, case.written, case.asked),
        **proven_by_aspect(case.fingerprints, case.written),
    }
    fixed = has_written_size(case.source)
    shown = {
        **proven_by_rank(case.without_turned(), case.unexplained),
        **{i: name for i, name in placed.items() if fixed or name != HARD_CODED},
    }
    following = that_follow(case.written, case.parameters, case.raised)
    case.hides_layers = bool(following)
    case.raised = {i: name for i, name in case.raised.items() if i not in following}
    left = {i: name for i, name in case.proven.items() if i not in following}
    case.proven = {**case.parameters, **shown, **left}


def _diagnosis(case: _Case, explained: Sequence[Fault]) -> Diagnosis:
    """Return the names; where what is proved cannot be the cause of what is wrong, and nothing explains that, beside it."""
    fingerprints = case.fingerprints
    unwritten = [
        UNTOUCHED if target_of(e.call) in case.empty else _proven(e, case.mutates) for e in case.unfinished.values()
    ]
    last = list(filter(None, unwritten))
    ids = list(dict.fromkeys(case.proven.values()))
    # Of mutants with the same answers the proof tells which it is.
    faults = [fault for fault in explained if set(ids).isdisjoint(fault.ids)]
    wrong = case.unexplained.keys()
    # What a guard keeps from being run need not be explained, nor the numbers of weights that nobody gave it.
    is_cause = (
        bool(explained)
        or REFUSES in ids
        or case.hides_layers
        or can_cause(ids, wrong - case.proven.keys(), wrong, lambda: _differing(fingerprints, wrong, case.asked))
    )
    return in_order(fingerprints.content.words, case.raised.values(), faults, ids, last, is_cause)


def _refused_by_guards(written: Mapping[int, Comparison], source: str) -> dict[int, Guard]:
    """Return the calls that the reference answers, and a guard of the attempt refuses."""
    raised = {i: (target_of(e.call), e.reply.raised) for i, e in written.items() if e.right.raised is None}
    return guards_of(source, {i: (target, each) for i, (target, each) in raised.items() if each is not None})


def _is_of_more(
    explained: Sequence[Fault], refused: Mapping[int, Guard], unexplained: Collection[int], answers: Collection[str]
) -> bool:
    """Return whether what explains the calls says more than that allowed inputs are refused, which mutants do, too."""
    names = {fault.id for fault in explained}
    if not names or names <= {*answers} or (names == {UNDIVIDED} and any(g.divides for g in refused.values())):
        return bool(names)
    return not refused.keys() >= {*unexplained}


def _differing(fingerprints: Fingerprints, wrong: Set[int], asked: Set[int]) -> dict[str, list[set[int]]]:
    """For each misconception the calls, of those that are asked, that each of its mutants answers as the reference does not.

    Not those that the attempt refuses, as it should: what comes after that is not seen. What chance decides may be the
    mistake's doing where the attempt is wrong.
    """
    content, found = fingerprints.content, dict[str, list[set[int]]]()
    told = [i for i in asked if i in wrong or content.right(i).raised != "refused"]
    for m, mutant in enumerate(content.mutants):
        calls = {i for i in told if (i in wrong if mutant.answers[i] is None else not is_silent(fingerprints, m, i))}
        found.setdefault(mutant.id, []).append(calls)
    return found


def _proven(seen: Comparison, mutates: bool) -> str:
    """Return the misconception that an exception proves by itself, or ""; mutates: whether an argument was seen to change."""
    return proven_by(seen.reply.raised, mutates) if seen.right.raised is None else ""


def _is_unfinished(seen: Comparison) -> bool:
    return seen.reply.raised is not None and seen.right.raised is None and is_unfinished(seen.reply.raised)


def _says_no_more(seen: Comparison, others: Collection[Comparison]) -> bool:
    """Return whether it raises where there are no numbers, because there are none.

    Or in most calls of that function with numbers, too: it says no more than those, and in other words.
    """
    if seen.reply.raised is None or not has_no_numbers(seen.right):
        return False
    if looks_at_no_numbers(seen) and not on_another_device(seen):
        return True
    alike = [e for e in others if target_of(e.call) == target_of(seen.call) and e.right.raised is None]
    with_numbers = [e.reply.raised is not None for e in alike if not has_no_numbers(e.right)]
    return 2 * sum(with_numbers) > len(with_numbers)


def _of_several_faults(fingerprints: Fingerprints, unexplained: Mapping[int, Comparison]) -> set[int]:
    """Return the calls with dropout at work that no mutant answers as the attempt does.

    What another fault leaves of the numbers may be in them, too, and the other calls tell them apart.
    """
    replies = fingerprints.content.replies
    return {
        i
        for i, e in unexplained.items()
        if is_of_copies(e.call) and not any(reply.agrees(e.found, facets_of(fingerprints, i)) for reply in replies[i])
    }
