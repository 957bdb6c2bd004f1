"""Name the misconceptions that an attempt's answers show, held against the recorded answers of
mutants.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace

from ..checks.explain import is_dtype_fault, is_unfinished
from ..checks.runner import target_of
from ..submission.source import UNTOUCHED, unwritten_names
from .bank import Bank
from .broken_aspect import proven_by_aspect, proven_by_plain_numbers
from .curves import of_one_number
from .diagnosis import Candidate, Diagnosis, in_order
from .directions import without_other_directions
from .explain_row import (
    explain,
    explain_behind,
    explain_by_kind,
    explain_functions,
    explain_nearly,
    explain_two,
    smallest_cover,
)
from .fingerprint import has_no_numbers
from .fixed_sizes import (
    HARD_CODED,
    has_written_size,
    lines_that_turn_all_axes,
    proven_by_rank,
    proven_by_size,
)
from .guards import REFUSES, UNDIVIDED, Guard, guards_of
from .observe import (
    ObservedReply,
    fault_of_device,
    is_moved_after_a_call,
    is_of_copies,
    looks_at_no_numbers,
    on_another_device,
)
from .proofs import (
    MUTATED,
    ROUNDED,
    UNREGISTERED,
    are_rounded,
    can_cause,
    proven_by,
    proven_by_answer,
    proven_by_parameters,
    without_more,
)
from .recording import FaultDictionary, differs
from .row import Response
from .same_places import pass_fail_match
from .varying_answers import proven_by_chance


def diagnose(
    recording: FaultDictionary,
    observations: Mapping[int, ObservedReply],
    source: str,
    bank: Bank | None = None,
) -> Diagnosis:
    """Name what exceptions and facets prove, then the mutants that answer as the attempt does.

    What reaches a function that is not written yet says nothing of those that are: it is named
    last, and explains nothing.

    Args:
        recording: the exercise's recording.
        observations: the replies, by the number of the recorded call.
        source: the attempt's text, "" where it is not at hand.
        bank: the exercise's mutants, of which two can be made in one; None at home, where they are
            not.
    """
    case = _Case(recording, observations, source)
    explained = (
        explain(case.row, case.proofs) or explain_nearly(case.row) or explain_by_kind(case.row)
    )
    explained = explained or _beside_parameters(case) or explain_functions(case.row, case.proofs)
    explained = explained or explain_behind(case.row, case.proofs)
    explained = _behind_guards(case, explained)
    if bank is not None and not explained and not case.parameters:
        explained = explain_two(case.row, case.proofs, bank)
    if UNREGISTERED in (*case.parameters.values(), *(fault.id for fault in explained)):
        _leave_dtypes_that_follow(case)
    if explained:
        case.proven |= proven_by_plain_numbers(recording, case.row.written)
    if not explained:
        _prove_more(case)
    elif case.dropped:
        by_aspect = proven_by_aspect(
            recording,
            {
                i: e
                for i, e in case.row.written.items()
                if is_of_copies(e.call) or i in case.row.syndrome
            },
        )
        case.proven |= {i: name for i, name in by_aspect.items() if i in case.dropped}
    return replace(_diagnosis(case, explained), answers=case.row.digest())


class _Case:
    """An attempt's replies, and what of them is to be explained.

    unfinished: the calls that reach a function which is not written. row: the others.
    raised, answers: the misconception that an exception, or an answer, proves by itself, by the
    call; both are part of proven. parameters: the same of parameters that are missing or too
    many. hides_layers: whether it computes with weights of its own.
    """

    def __init__(
        self, recording: FaultDictionary, observations: Mapping[int, ObservedReply], source: str
    ) -> None:
        self.fingerprints, self.source = recording, source
        self.empty = unwritten_names(source)
        self.mutates = any(comparison.reply.mutated for comparison in observations.values())
        unfinished = {
            i for i, e in observations.items() if e.reply.raised and is_unfinished(e.reply.raised)
        }
        self.unfinished = {
            i: e
            for i, e in observations.items()
            if i in unfinished or target_of(e.call) in self.empty
        }
        written = {i: e for i, e in observations.items() if i not in self.unfinished}
        idle = {i for i, e in written.items() if _says_no_more(e, written.values())}
        written = {i: e for i, e in written.items() if i not in idle}
        calls = {call for check in recording.checks for call in check.calls}
        syndrome = {i: e for i, e in written.items() if differs(recording, i, e.actual)}
        self.row = Response(recording, written, syndrome, calls - idle - self.unfinished.keys())
        self.raised = {i: name for i, e in written.items() if (name := _proven(e, self.mutates))}
        # What gives nothing anywhere lets nothing through.
        gives = {
            target_of(e.call)
            for e in written.values()
            if any(out.tensor is not None for out in e.reply.outputs)
        }
        informative = (
            i
            for i, e in written.items()
            if e.expected.raised != "refused" or target_of(e.call) in gives
        )
        answers = (
            (i, proven_by_answer(recording, i, written[i]))
            for i in informative
            if i not in self.raised
        )
        self.answers = {i: name for i, name in answers if name}
        if are_rounded(observation.reply for observation in syndrome.values()):
            self.answers |= dict.fromkeys(syndrome, ROUNDED)
        # an exception that mutants raise, too, proves nothing beside them
        if self.raised and smallest_cover(self.row):
            self.raised = {}
        self.proven = {**proven_by_chance(self.row), **self.raised, **self.answers}
        self.dropped = _dropped_otherwise(self.row)
        not_due = ((i, e) for i, e in syndrome.items() if e.expected.raised == "refused")
        self.in_its_own_way = {
            i for i, e in not_due if e.actual.raised or target_of(e.call) not in gives
        }
        self.parameters: dict[int, str] = {}
        self.hides_layers = False

    @property
    def proofs(self) -> list[Set[int]]:
        """What is set aside: dropout that no mutant makes, and refusals of a kind of its own; what
        exceptions prove; what anything proves.
        """
        excluded = self.dropped | self.in_its_own_way
        return [excluded, excluded | self.raised.keys(), excluded | self.proven.keys()]


def _dropped_otherwise(row: Response) -> Set[int]:
    """Return the wrong calls with dropout at work that no mutant answers as the attempt does.

    What another mistake leaves of the numbers may be in them, too, and the other calls tell them
    apart.
    """
    copies = {i for i, e in row.syndrome.items() if is_of_copies(e.call)}
    if copies == row.syndrome.keys():
        return set()
    return {
        i for i in copies if not any(row.matches(m, i) for m in range(len(row.recording.mutants)))
    }


def _behind_guards(case: _Case, explained: Sequence[Candidate]) -> Sequence[Candidate]:
    """Return what explains the calls that a guard lets through, where it refuses allowed inputs and
    no name says more.
    """
    written, syndrome = case.row.written, case.row.syndrome
    allowed = {i: e for i, e in written.items() if e.expected.raised is None}
    raised = {
        i: (target_of(e.call), exception)
        for i, e in allowed.items()
        if (exception := e.reply.raised) is not None
    }
    refused = guards_of(case.source, raised)
    follows = any(i not in case.raised and written[i].expected.raised is None for i in case.proven)
    if (
        not refused
        or follows
        or any(_only_stops(case.fingerprints, fault.id) for fault in explained)
    ):
        return explained
    let_in = any(e.expected.raised == "refused" != e.actual.raised for e in written.values())
    divides = let_in and any(guard.divides for guard in refused.values())
    if _is_of_more(
        explained,
        refused,
        divides,
        [i for i in syndrome if i not in case.answers],
        case.answers.values(),
    ):
        return explained
    # A guard the wrong way round lets through what it should refuse, which then fails somewhere
    # else.
    inverted = any(guard.inverted for guard in refused.values())
    let_through = {
        i
        for i, e in syndrome.items()
        if inverted and e.reply.raised and "refused" == e.expected.raised != e.actual.raised
    }
    remainder = case.row.without(refused.keys() | let_through)
    behind = explain(remainder, case.proofs)
    stopped = {
        i for i, e in remainder.syndrome.items() if e.reply.raised and e.expected.raised is None
    }
    if not behind and not stopped <= case.proven.keys():
        return explained  # a number that is read wrong stops in more than one place
    case.proven |= dict.fromkeys(refused, REFUSES)
    case.raised |= dict.fromkeys(refused, REFUSES)
    return behind


def _only_stops(recording: FaultDictionary, id_: str) -> bool:
    """Return whether a misconception is one that stops: no mutant of it gives another answer than
    the reference.
    """
    detections = zip(recording.mutants, recording.detected_in, strict=True)
    spoken = (
        (mutant, i)
        for mutant, calls in detections
        if mutant.id == id_
        for i in recording.facets
        if calls >> i & 1
    )
    return all(
        (answer := recording.answer(*pair)) is not None and bool(answer.raised) for pair in spoken
    )


def _beside_parameters(case: _Case) -> Sequence[Candidate]:
    """Return what explains the values as though no parameter were too many, where those prove a
    mistake.
    """
    case.parameters = proven_by_parameters(case.fingerprints, case.row.written)
    observations = without_more(case.row.written, case.parameters)
    syndrome = {
        i: e
        for i, e in observations.items()
        if i in case.row.syndrome and differs(case.fingerprints, i, e.actual)
    }
    explained = explain(
        Response(case.fingerprints, observations, syndrome, case.row.calls), case.proofs
    )
    if explained:
        case.proven = {**case.parameters, **case.proven}
    return explained


def _prove_more(case: _Case) -> None:
    """Take down what ranks, places and aspects prove where nobody's numbers are the attempt's."""
    row = case.row
    placed = {
        **pass_fail_match(case.fingerprints, row.written, row.calls),
        **proven_by_aspect(case.fingerprints, row.written),
    }
    directions = {id_: words.shows for id_, words in case.fingerprints.words.items() if words.shows}
    placed = without_other_directions(placed, row.written, directions)
    never = of_one_number(case.fingerprints) | (
        set() if has_written_size(case.source) else {HARD_CODED}
    )
    turned = lines_that_turn_all_axes(case.source)  # which no rank proves
    observations = {
        i: e
        for i, e in row.written.items()
        if not (e.reply.raised and e.reply.raised.line in turned)
    }
    evidence = {
        **proven_by_rank(observations, row.syndrome),
        **proven_by_size(row, case.source),
        **{i: name for i, name in placed.items() if name not in never},
    }
    case.proven = {**case.parameters, **evidence, **case.proven}


def _leave_dtypes_that_follow(case: _Case) -> None:
    """Leave out two dtypes that meet where no `.to` reaches a layer: it is not registered."""
    raised = {i: case.row.written[i].reply.raised for i in case.raised}
    consequences = {
        i for i, exception in raised.items() if exception is not None and is_dtype_fault(exception)
    }
    case.hides_layers = bool(consequences)
    case.raised = {i: name for i, name in case.raised.items() if i not in consequences}
    case.proven = {i: name for i, name in case.proven.items() if i not in consequences}


def _diagnosis(case: _Case, explained: Sequence[Candidate]) -> Diagnosis:
    """Return the names; where what is proved cannot be the cause of what is wrong, and nothing
    explains that, beside it.
    """
    unwritten = [
        UNTOUCHED if target_of(e.call) in case.empty else _proven(e, case.mutates)
        for e in case.unfinished.values()
    ]
    ids = list(dict.fromkeys(case.proven.values()))
    # Of mutants with the same answers the proof tells which it is.
    faults = [fault for fault in explained if set(ids).isdisjoint(fault.ids)]
    syndrome = case.row.syndrome.keys()
    # What a guard keeps from being run need not be explained, nor the numbers of weights that
    # nobody gave it.
    is_cause = (
        bool(explained)
        or REFUSES in ids
        or case.hides_layers
        or can_cause(
            ids,
            syndrome - case.proven.keys() - case.in_its_own_way,
            syndrome,
            lambda: _differing(case.row),
        )
    )
    words = case.fingerprints.words
    # before the gradient that it cuts
    causes = [*case.raised.values(), *(MUTATED for name in ids if name == MUTATED)]
    return in_order(words, causes, faults, ids, filter(None, unwritten), is_cause)


def _is_of_more(
    explained: Sequence[Candidate],
    refused: Mapping[int, Guard],
    divides: bool,
    unexplained: Collection[int],
    answers: Collection[str],
) -> bool:
    """Return whether what explains the calls says more than that allowed inputs are refused, which
    mutants do, too.

    divides: whether a guard asks for a rest, and yet not every input is refused that should be.
    """
    names = {fault.id for fault in explained}
    if not names or names <= {*answers} or (names == {UNDIVIDED} and divides):
        return bool(names)
    return not refused.keys() >= {*unexplained}


def _differing(row: Response) -> dict[str, list[set[int]]]:
    """For each misconception the calls, of those that are asked, that each of its mutants answers
    as the reference does not.

    Not those that the attempt refuses, as it should: what comes after that is not seen. What chance
    decides may be the mistake's doing where the attempt is wrong.
    """
    detections = dict[str, list[set[int]]]()
    informative = [
        i
        for i in row.calls
        if i in row.syndrome or row.recording.expected_reply(i).raised != "refused"
    ]
    for m in range(len(row.recording.mutants)):
        calls = {
            i
            for i in informative
            if (i in row.syndrome if row.is_nondeterministic(m, i) else not row.survives(m, i))
        }
        detections.setdefault(row.id(m), []).append(calls)
    return detections


def _proven(observation: ObservedReply, mutates: bool) -> str:
    """Return the misconception that an exception proves by itself, or ""; mutates: whether an
    argument was seen to change.
    """
    return (
        proven_by(observation.reply.raised, mutates) if observation.expected.raised is None else ""
    )


def _says_no_more(observation: ObservedReply, observations: Collection[ObservedReply]) -> bool:
    """Return whether a call adds nothing to what others say.

    Something stays behind when the module moves after a call, and it stays behind without that
    call, too, or it is no mask: what else is kept shows in other calls. Or the call raises where
    there are no numbers, because there are none, or in most calls of that function with numbers,
    too: it says no more than those, and in other words.
    """
    of_function = [
        peer for peer in observations if target_of(peer.call) == target_of(observation.call)
    ]
    if is_moved_after_a_call(observation.call) and on_another_device(observation):
        moved_before = [peer for peer in of_function if not is_moved_after_a_call(peer.call)]
        return not fault_of_device(observation) or any(map(on_another_device, moved_before))
    if observation.reply.raised is None or not has_no_numbers(observation.expected):
        return False
    if looks_at_no_numbers(observation) and not on_another_device(observation):
        return True
    alike = [peer for peer in of_function if peer.expected.raised is None]
    with_numbers = [e.reply.raised is not None for e in alike if not has_no_numbers(e.expected)]
    return 2 * sum(with_numbers) > len(with_numbers)
