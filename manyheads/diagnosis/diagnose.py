"""Name the misconceptions that an attempt's replies show, compared with the fault dictionary."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace

from ..checks.explain import is_dtype_fault, is_unfinished
from ..checks.runner import target_of
from ..submission.source import UNTOUCHED, Source
from .bank import Bank, Candidate, Diagnosis, in_order
from .evidence import (
    MUTATED,
    REFUSES,
    ROUNDED,
    UNDIVIDED,
    UNREGISTERED,
    Guard,
    are_rounded,
    can_cause,
    guards_of,
    proven_by,
    proven_by_answer,
    proven_by_parameters,
    without_more,
)
from .fault_dictionary import FaultDictionary, Response, differs
from .fingerprint import has_no_numbers
from .match import (
    explain,
    explain_behind,
    explain_by_kind,
    explain_functions,
    explain_nearly,
    explain_two,
    of_one_number,
    smallest_cover,
)
from .nondeterminism import proven_by_chance
from .observed_reply import (
    ObservedReply,
    fault_of_device,
    is_moved_after_a_call,
    is_of_copies,
    looks_at_no_numbers,
    on_another_device,
    without_other_directions,
)
from .oracles import proven_by_aspect, proven_by_plain_numbers
from .pass_fail import (
    HARD_CODED,
    has_written_size,
    lines_that_turn_all_axes,
    pass_fail_match,
    proven_by_rank,
    proven_by_size,
)


def diagnose(
    recording: FaultDictionary,
    observations: Mapping[int, ObservedReply],
    source: Source,
    bank: Bank | None = None,
) -> Diagnosis:
    """Name the misconceptions that explain an attempt's replies.

    Candidates are looked up under conditions that are less strict each time, until some explain the
    replies. If none do, weaker evidence is collected. A call that reaches a function which is not
    written yet shows nothing about other functions: such a function is named last.

    Args:
        recording: the exercise's fault dictionary.
        observations: the replies, by the index of the recorded call.
        source: the attempt's text; it is empty if it is not at hand.
        bank: the exercise's mutants, of which two can be combined in one. None on a student's
            machine, which has no mutants.
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
    """An attempt's replies, its response, and the direct evidence.

    Attributes:
        empty: the names of functions that are not written.
        mutates: whether an argument was seen to change.
        unfinished: the replies that reach a function which is not written.
        row: the response: all other replies.
        raised: for each call the misconception that its exception proves, if any.
        answers: the same for replies without exception.
        proven: all proven misconceptions by call, with those of `raised` and `answers`.
        dropped: calls with dropout at work to which no mutant replies as the attempt does.
        odd_refusals: calls that must be refused and that raise an unexpected exception, or whose
            function never returns a tensor.
        parameters: misconceptions that missing or extra parameters prove, by call.
        hides_layers: whether layers are not registered, so that the attempt computes with weights
            that it was not given.
    """

    def __init__(
        self, recording: FaultDictionary, observations: Mapping[int, ObservedReply], source: Source
    ) -> None:
        self.recording, self.source = recording, source
        self.empty = source.unwritten_names
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
        redundant = {i for i, e in written.items() if _is_redundant(e, written.values())}
        written = {i: e for i, e in written.items() if i not in redundant}
        calls = {call for check in recording.checks for call in check.calls}
        syndrome = {i: e for i, e in written.items() if differs(recording, i, e.actual)}
        counted = calls - redundant - self.unfinished.keys()
        self.row = Response(recording, written, syndrome, counted)
        self.raised = {i: name for i, e in written.items() if (name := _proven(e, self.mutates))}
        # A function that never returns a tensor cannot be said to accept an invalid input.
        returning = {target_of(e.call) for e in written.values() if _returns_a_tensor(e)}
        informative = (
            i
            for i, e in written.items()
            if e.expected.raised != "refused" or target_of(e.call) in returning
        )
        answers = (
            (i, proven_by_answer(recording, i, written[i]))
            for i in informative
            if i not in self.raised
        )
        self.answers = {i: name for i, name in answers if name}
        if are_rounded(observation.reply for observation in syndrome.values()):
            self.answers |= dict.fromkeys(syndrome, ROUNDED)
        # if mutants explain the exceptions, these prove nothing more
        if self.raised and smallest_cover(self.row):
            self.raised = {}
        self.proven = {**proven_by_chance(self.row), **self.raised, **self.answers}
        self.dropped = _unmatched_dropout(self.row)
        refusals = ((i, e) for i, e in syndrome.items() if e.expected.raised == "refused")
        self.odd_refusals = {
            i for i, e in refusals if e.actual.raised or target_of(e.call) not in returning
        }
        self.parameters: dict[int, str] = {}
        self.hides_layers = False

    @property
    def proofs(self) -> list[Set[int]]:
        """Three nested sets of calls to exclude before candidates are looked up.

        The first has dropout that no mutant reproduces, and refusals with an unexpected exception
        type. The second has also calls with an exception that proves a misconception, and the
        third all calls with direct evidence.
        """
        excluded = self.dropped | self.odd_refusals
        return [excluded, excluded | self.raised.keys(), excluded | self.proven.keys()]


def _returns_a_tensor(observation: ObservedReply) -> bool:
    return any(output.tensor is not None for output in observation.reply.outputs)


def _unmatched_dropout(row: Response) -> Set[int]:
    """Return the wrong calls with dropout at work to which no mutant replies as the attempt does.

    A second mistake may change their numbers, too, and the other calls tell which mistake it is.
    Return none if there are no other wrong calls.
    """
    copies = {i for i, e in row.syndrome.items() if is_of_copies(e.call)}
    if copies == row.syndrome.keys():
        return set()
    unmatched = set[int]()
    for i in copies:
        if not any(row.matches(m, i) for m in range(len(row.recording.mutants))):
            unmatched.add(i)
    return unmatched


def _behind_guards(case: _Case, explained: Sequence[Candidate]) -> Sequence[Candidate]:
    """Return candidates for the calls behind a guard that refuses allowed inputs.

    A guard is a test of sizes that raises. The code behind it does not run, so the refused calls
    are left out, and the guard itself becomes evidence. Return `explained` if there is no such
    guard, or if `explained` says more than that.
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
    if not refused or follows or any(_only_stops(case.recording, fault.id) for fault in explained):
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
    # An inverted guard lets through the inputs that it should refuse. These then fail elsewhere.
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
        return explained  # a size that is read wrong makes the attempt raise in other lines, too
    case.proven |= dict.fromkeys(refused, REFUSES)
    case.raised |= dict.fromkeys(refused, REFUSES)
    return behind


def _only_stops(recording: FaultDictionary, id_: str) -> bool:
    """Return whether each mutant of a misconception raises in all calls that detect it."""
    for mutant, calls in zip(recording.mutants, recording.detected_in, strict=True):
        if mutant.id == id_:
            answers = (recording.answer(mutant, i) for i in recording.facets if calls >> i & 1)
            if any(answer is None or not answer.raised for answer in answers):
                return False
    return True


def _beside_parameters(case: _Case) -> Sequence[Candidate]:
    """Return candidates for the values alone, if extra parameters prove a misconception.

    The replies are compared as though the extra parameters were not there.
    """
    case.parameters = proven_by_parameters(case.recording, case.row.written)
    observations = without_more(case.row.written, case.parameters)
    syndrome = {
        i: e
        for i, e in observations.items()
        if i in case.row.syndrome and differs(case.recording, i, e.actual)
    }
    explained = explain(
        Response(case.recording, observations, syndrome, case.row.calls), case.proofs
    )
    if explained:
        case.proven = {**case.parameters, **case.proven}
    return explained


def _prove_more(case: _Case) -> None:
    """Add weaker evidence, for an attempt whose numbers no mutant gives.

    It is the number of axes, fixed sizes, the pass/fail dictionary and violated oracles.
    """
    row = case.row
    names = {
        **pass_fail_match(case.recording, row.written, row.calls),
        **proven_by_aspect(case.recording, row.written),
    }
    directions = {id_: words.shows for id_, words in case.recording.words.items() if words.shows}
    names = without_other_directions(names, row.written, directions)
    excluded = set(of_one_number(case.recording))
    if not has_written_size(case.source):
        excluded.add(HARD_CODED)
    transposed = lines_that_turn_all_axes(case.source)
    # an exception in such a line does not prove a fixed number of axes
    observations = {
        i: e
        for i, e in row.written.items()
        if not (e.reply.raised and e.reply.raised.line in transposed)
    }
    evidence = {
        **proven_by_rank(observations, row.syndrome),
        **proven_by_size(row, case.source),
        **{i: name for i, name in names.items() if name not in excluded},
    }
    case.proven = {**case.parameters, **evidence, **case.proven}


def _leave_dtypes_that_follow(case: _Case) -> None:
    """Remove the evidence of two dtypes that meet: `.to` does not reach an unregistered layer."""
    raised = {i: case.row.written[i].reply.raised for i in case.raised}
    consequences = {
        i for i, exception in raised.items() if exception is not None and is_dtype_fault(exception)
    }
    case.hides_layers = bool(consequences)
    case.raised = {i: name for i, name in case.raised.items() if i not in consequences}
    case.proven = {i: name for i, name in case.proven.items() if i not in consequences}


def _diagnosis(case: _Case, explained: Sequence[Candidate]) -> Diagnosis:
    """Return the misconceptions in order.

    If nothing explains the wrong values, and no proven misconception can be their cause, the proven
    ones are listed in `Diagnosis.also`.
    """
    unwritten = [
        UNTOUCHED if target_of(e.call) in case.empty else _proven(e, case.mutates)
        for e in case.unfinished.values()
    ]
    ids = list(dict.fromkeys(case.proven.values()))
    # If one of several mutants with the same replies is proven, it is that one.
    faults = [fault for fault in explained if set(ids).isdisjoint(fault.ids)]
    syndrome = case.row.syndrome.keys()
    # Code behind a guard does not run, so nothing has to explain it. Nor do the numbers of weights
    # that the attempt was not given.
    is_cause = (
        bool(explained)
        or REFUSES in ids
        or case.hides_layers
        or can_cause(
            ids,
            syndrome - case.proven.keys() - case.odd_refusals,
            syndrome,
            lambda: _differing(case.row),
        )
    )
    words = case.recording.words
    # a changed argument is named before the gradient that it cuts
    causes = [*case.raised.values(), *(MUTATED for name in ids if name == MUTATED)]
    return in_order(words, causes, faults, ids, filter(None, unwritten), is_cause)


def _is_of_more(
    explained: Sequence[Candidate],
    refused: Mapping[int, Guard],
    divides: bool,
    unexplained: Collection[int],
    answers: Collection[str],
) -> bool:
    """Return whether the candidates say more than that a guard refuses allowed inputs.

    Args:
        explained: the candidates. Mutants refuse allowed inputs, too.
        refused: the guards, by the call that they refuse.
        divides: whether a guard tests a remainder, although the attempt does not refuse every input
            that it should.
        unexplained: the wrong calls whose reply proves nothing.
        answers: the misconceptions that replies prove.
    """
    names = {fault.id for fault in explained}
    if not names or names <= {*answers} or (names == {UNDIVIDED} and divides):
        return bool(names)
    return not refused.keys() >= {*unexplained}


def _differing(row: Response) -> dict[str, list[set[int]]]:
    """Return for each misconception, and each of its mutants, the calls that detect the mutant.

    Calls that the attempt rightly refuses are left out: no code after the refusal runs. If the
    mutant's reply is nondeterministic, the call counts if the attempt is wrong there.
    """
    detections = dict[str, list[set[int]]]()
    informative = [
        i
        for i in row.calls
        if i in row.syndrome or row.recording.expected_reply(i).raised != "refused"
    ]
    for m in range(len(row.recording.mutants)):
        calls = {i for i in informative if _may_detect(row, m, i)}
        detections.setdefault(row.id(m), []).append(calls)
    return detections


def _may_detect(row: Response, mutant: int, call: int) -> bool:
    if row.is_nondeterministic(mutant, call):
        return call in row.syndrome
    return not row.survives(mutant, call)


def _proven(observation: ObservedReply, mutates: bool) -> str:
    """Return the misconception that the exception of a call proves by itself, or ""."""
    return (
        proven_by(observation.reply.raised, mutates) if observation.expected.raised is None else ""
    )


def _is_redundant(observation: ObservedReply, observations: Collection[ObservedReply]) -> bool:
    """Return whether a call adds no evidence to the evidence of other calls.

    One case is a module that moves to the meta device after a first call, and leaves a tensor
    behind. The call is redundant if the tensor stays behind without the first call as well, or if
    it is no mask: other calls show the other tensors that a module keeps.

    The other case is a call with meta tensors that raises. It is redundant if it raises because it
    reads their numbers, or if the function raises on most ordinary inputs as well.
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
