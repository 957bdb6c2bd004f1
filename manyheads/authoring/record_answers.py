"""Record how the reference and every mutant answer on public inputs.

Trusted code answers each recorded call once. For `course plot`, the attention shares of a
reference's heads are recognised among the results of torch's functions: one table of (T, T) for
each head, with rows that sum to one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..box.worker import wire
from ..box.worker.messages import Call, Reply
from ..checks.explain import KINDS
from ..checks.runner import (
    Exchange,
    LocalRecordingRunner,
    LocalRunner,
    as_an_attempts,
    namespace_of,
)
from ..course import CourseError, Exercise
from ..diagnosis.bank import Bank, MisconceptionText, Namespace, load_bank
from ..diagnosis.evidence import REFUSES
from ..diagnosis.fault_dictionary import FaultDictionary, PublicCheck, RecordedMutant
from ..diagnosis.fingerprint import (
    REPLY_FIELDS,
    ReplyField,
    ReplyFingerprint,
    fingerprint_beside,
    has_no_numbers,
)
from ..diagnosis.observed_reply import ObservedReply, settled
from ..diagnosis.recording_file import key_of, save
from ..judge.attempt_runner import ReplayCache
from ..judge.run_checks import Catalogue
from ..submission.source import code_digest
from .record_calls import (
    PUBLIC,
    RecordedCall,
    RecordedCalls,
    Replies,
    evidence_for_author,
    recorded_calls,
    recorded_curves,
    recorded_pairs,
)
from .stub import stub_of
from .time_limit import must_end
from .visible_checks import LabelledProgram, ViolatedOracles, broken_aspects, choose_all, within

_ROUNDING = 1e-3  # of the sum of a row


class _Shares(TorchFunctionMode):
    """Keeps the last tensor of (1, nh, T, T), or (1, T, T), whose rows are shares."""

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self._sides = (tokens, tokens)
        self.last: Tensor | None = None

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if (
            isinstance(result, Tensor)
            and result.is_floating_point()
            and result.shape[-2:] == self._sides
        ):
            with torch._C.DisableTorchFunction():
                is_shared_out = bool((result >= 0).all()) and bool(
                    ((result.sum(-1) - 1).abs() < _ROUNDING).all()
                )
            if is_shared_out:
                self.last = result
        return result


def shares_of(module: nn.Module, inputs: Tensor, attributes: Mapping[str, bool]) -> Tensor | None:
    """Return the weights of each head for one sequence, (nh, T, T); None if the module shows none.

    Args:
        module: The reference's, in eval mode.
        inputs: Its input, (1, T, C).
        attributes: Those with which its weights can be seen, such as flash=False. They stay set.
    """
    for name, value in attributes.items():
        setattr(module, name, value)
    with torch.no_grad(), _Shares(inputs.shape[1]) as shares:
        module(inputs)
    if shares.last is None:
        return None
    weights: Tensor = shares.last[0]
    return weights if weights.dim() == 3 else weights[None]


# for each call the different replies, the reference's first
Every = Sequence[Sequence[ReplyFingerprint]]
# An exception, a guard or an unreadable file may prove them.
ALWAYS = {
    "load_error",
    REFUSES,
    *(error_kind.misconception for error_kind in KINDS if error_kind.misconception),
}
# Of a reply: where it is stored; itself if rounding may decide it; None: chance does.
Place = int | ReplyFingerprint | None


@dataclass(frozen=True)
class Asked:
    """A reply as an attempt's.

    whole: of many copies all answers. call: in float32 where float64 raised.
    """

    observed: ObservedReply
    full_reply: Reply
    call: RecordedCall


class _Witness(LocalRecordingRunner):
    """Trusted code that is asked what the hidden checks ask.

    It has answered the calls that are recorded.
    """

    def __init__(
        self, namespace: Namespace, memory: ReplayCache, recorded_replies: Mapping[int, Reply]
    ) -> None:
        super().__init__(namespace)
        self._memory, self._known = memory, recorded_replies  # its replies, by the ids of the calls

    def execute(self, call: Call) -> Reply:
        """Return the reply; of equal ones the same object, by which the memory knows what a check
        does next.
        """
        reply = self._known.get(id(call)) or as_an_attempts(
            self._runner, call, self._runner.execute(call)
        )
        read = self._memory.read(wire.encode(reply)[wire.LENGTH.size :])
        self.transcript.append(Exchange(self.check, call, read))
        return read


class MutantRun:
    """Asks trusted code that has answered the recorded calls what the hidden checks ask on public
    inputs.
    """

    def __init__(self, catalogue: Catalogue, exercise: Exercise, recorded: RecordedCalls) -> None:
        self._catalogue, self._exercise, self._held = catalogue, exercise, recorded.calls
        self._reference = catalogue.remembering(exercise)

    def kill_row(self, namespace: Namespace, answers: Sequence[Asked]) -> str:
        """Return for each hidden check 1 where it failed, 2 where it passed and a condition did
        not, else 0.
        """
        memory = self._reference.memory
        memory.begin_attempt()  # before calls are held, for it may forget them
        self._held = tuple(map(memory.hold, self._held))
        witness = _Witness(
            namespace,
            memory,
            {id(c): a.full_reply for c, a in zip(self._held, answers, strict=True)},
        )
        # prints and warnings cost nothing
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            ends = self._catalogue.run(
                self._exercise, witness, self._reference, PUBLIC, self._exercise.id
            )
        return "".join(
            "0" if outcome.outcome == "passed" else "12"[outcome.trivial_answer] for outcome in ends
        )


def answers_of(recorded: RecordedCalls, namespace: Namespace) -> list[Asked]:
    """Return the answer of trusted code to each recorded call."""
    answers = []
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        for i, recorded_call in enumerate(recorded.entries):
            call, raw_reply = recorded_call.call, recorded_call.full_reply(namespace)
            full_reply = as_an_attempts(LocalRunner(namespace), call, raw_reply)
            reply, expected = settled(call, full_reply), recorded.fingerprints[i]
            observed = ObservedReply(
                call,
                expected,
                recorded.expected[i],
                reply,
                fingerprint_beside(expected, call, reply),
            )
            answers.append(
                Asked(
                    observed,
                    full_reply,
                    recorded_call if full_reply is raw_reply else recorded_call.in_single(),
                )
            )
    return answers


def places_of(
    stored_replies: Sequence[Replies], namespace: Namespace, answers: Sequence[Asked]
) -> list[Place]:
    """Return for each call where the reply of this code is stored.

    Chance and rounding decide none that is.

    To see what rounding decides, inputs are nudged, after which equal numbers are equal no more. If
    nothing is left then by which the code differs from the reference, it may be about
    equal numbers: they are kept.

    stored_replies: the different replies to every call, the reference's first, each stored once.
    """
    places = _places_if_nudged(stored_replies, namespace, answers, keep_equal=False)
    if differs_for_sure(places) or not any(
        isinstance(position, ReplyFingerprint) for position in places
    ):
        return places
    return _places_if_nudged(stored_replies, namespace, answers, keep_equal=True)


def differs_for_sure(places: Sequence[Place]) -> bool:
    """Return whether a stored reply is another one than the reference's, which is stored first."""
    return any(isinstance(position, int) and position > 0 for position in places)


def _places_if_nudged(
    stored_replies: Sequence[Replies],
    namespace: Namespace,
    answers: Sequence[Asked],
    keep_equal: bool,
) -> list[Place]:
    places = list[Place]()
    for replies, answer in zip(stored_replies, answers, strict=True):
        # the same as one that is known to be fixed
        actual, position = answer.observed.actual, replies.find(answer.observed.actual)
        if position is None and answer.call.is_fixed(
            namespace, actual, answer.observed.expected, keep_equal
        ):
            position = replies.add(actual)
        places.append(actual if position is None and not answer.call.is_drawn else position)
    return places


def without_rounding(
    stored_replies: Sequence[Replies], places: Sequence[Place], broken: ViolatedOracles
) -> tuple[tuple[int | None, ...], ViolatedOracles]:
    """Return the places and the aspects that are sure, once all mutants have answered.

    A reply that rounding may decide is none, unless another mutant gives it for sure: other
    processors compute others. What chance decides is drawn from the call's seed, and is the same
    everywhere.
    """
    pairs = zip(stored_replies, places, strict=True)
    sure = tuple(
        call_replies.find(position) if isinstance(position, ReplyFingerprint) else position
        for call_replies, position in pairs
    )
    of_rounding = {
        i for i, position in enumerate(places) if position is not None and sure[i] is None
    }
    return sure, frozenset(
        violation for violation in broken if of_rounding.isdisjoint(violation[1])
    )


def recorded_file(catalogue: Catalogue, exercise: Exercise) -> bytes:
    """Make the recording of an exercise.

    Raises what a broken course raises (CourseError, BrokenReference, …).
    """
    recorded, bank = recorded_calls(catalogue, exercise), load_bank(exercise)
    demand_right_attempts(catalogue, exercise)
    hearing, hidden = (
        MutantRun(catalogue, exercise, recorded),
        [outcome.id for outcome in recorded.outcomes],
    )
    stored_replies, groups = [*map(Replies, recorded.fingerprints)], list(recorded.groups.values())

    def broken(answers: Sequence[Asked]) -> ViolatedOracles:
        return broken_aspects([answer.observed for answer in answers], groups)

    subjects = list[LabelledProgram]()
    # what no check compares: a right attempt differs in it from the reference
    disputed = set[tuple[int, ReplyField]]()
    for path in exercise.right_attempts():
        with _must_end(exercise, f"the right attempt {path.name}", path, path):
            answers = answers_of(recorded, namespace_of(path))
        observed_replies = [answer.observed for answer in answers]
        disputed |= {
            (i, f)
            for i, observed in enumerate(observed_replies)
            for f in REPLY_FIELDS
            if not observed.actual.agrees(observed.expected, (f,))
        }
        subjects.append(LabelledProgram(frozenset(), True, broken(answers)))
    for path in exercise.wrong_attempts():  # no mutant stands for them
        namespace = namespace_of(path)
        with _must_end(exercise, f"the wrong attempt {path.name}", path, path):
            answers = answers_of(recorded, namespace)
            failed = _failed(hidden, hearing.kill_row(namespace, answers))
        subjects.append(LabelledProgram(failed, False, broken(answers)))
    heard = list[tuple[object, tuple[str, list[Place], ViolatedOracles]]]()
    for mutant in bank.mutants:
        with _must_end(
            exercise, f"the mutant {mutant.id}", exercise.solution, exercise.misconceptions
        ):
            answers = answers_of(recorded, mutant.namespace)
            behaviour = mutant.id, [answer.observed.actual for answer in answers]
            result = next((result for earlier, result in heard if earlier == behaviour), None)
            # else what is known of the other one is known of this one
            if result is None or not any(result[1]):
                row, places = (
                    hearing.kill_row(mutant.namespace, answers),
                    places_of(stored_replies, mutant.namespace, answers),
                )
                result = row, places, broken(answers)
        heard.append((behaviour, result))
    mutants = list[RecordedMutant]()
    for mutant, (_, (row, places, aspects)) in zip(bank.mutants, heard, strict=True):
        answers_for_sure, sure = without_rounding(stored_replies, places, aspects)
        mutants.append(RecordedMutant(mutant.id, answers_for_sure))
        subjects.append(LabelledProgram(_failed(hidden, row), False, sure, mutant.id))
    replies = tuple(tuple(call_replies.every) for call_replies in stored_replies)
    recording = FaultDictionary(
        exercise=exercise.id,
        stub=code_digest(stub_of(exercise)),
        checks=_checks(recorded, replies, disputed, subjects),
        calls=recorded.calls,
        expected=recorded.expected,
        replies=replies,
        mutants=tuple(mutants),
        words=words_of(bank),
        hidden=tuple(hidden),
        kills=tuple(row for _, (row, _, _) in heard),
        pairs=recorded_pairs(bank, recorded.calls, replies, mutants),
        sweeps=recorded_curves(bank, recorded),
        key=key_of(exercise),
        drawn=recorded.drawn,
        conditions=recorded.conditions,
    )
    return save(recording)


def demand_right_attempts(catalogue: Catalogue, exercise: Exercise) -> None:
    """Raise CourseError, with the attempt's file, if a right attempt fails a hidden check.

    Visible checks compare only what all right attempts share. A wrong one among them makes these
    checks blind, and mutants lose their names: so nothing is recorded.
    """
    reference = catalogue.remembering(exercise)
    for path in exercise.right_attempts():
        attempt = LocalRecordingRunner(namespace_of(path))
        with (
            redirect_stdout(StringIO()),
            redirect_stderr(StringIO()),
            _must_end(exercise, f"the right attempt {path.name}", path, path),
        ):
            outcomes = catalogue.run(exercise, attempt, reference, PUBLIC, exercise.id)
        failed = next((outcome for outcome in outcomes if outcome.outcome != "passed"), None)
        if failed is not None:
            problem = (
                f"{path.relative_to(exercise.root)} fails {failed.id}: "
                f"{evidence_for_author(failed, attempt.transcript, path)}"
            )
            mend = (
                f"mend it, move it to grader/wrong/{exercise.id}/, or mend that check in "
                f"{exercise.checks.name}"
            )
            raise CourseError(f"{problem}. Next: {mend}, then course release {exercise.id}")


def _must_end(
    exercise: Exercise, label: str, compiled_as: Path, source: Path
) -> AbstractContextManager[None]:
    next_step = f"mend it in {source.relative_to(exercise.root)}, then course release {exercise.id}"
    return must_end(label, compiled_as, next_step)


def _failed(hidden: Sequence[str], row: str) -> frozenset[str]:
    """Return the checks that fail by themselves: what a condition asks is seen in no aspect of an
    answer.
    """
    return frozenset(check for check, bit in zip(hidden, row, strict=True) if bit == "1")


def words_of(bank: Bank) -> dict[str, MisconceptionText]:
    """Return what students may read about misconceptions: those of the mutants, and those that
    speak for themselves.
    """
    ids = ALWAYS | {mutant.id for mutant in bank.mutants}
    return {id_: bank.texts[id_] for id_ in sorted(ids & bank.texts.keys())}


def _checks(
    recorded: RecordedCalls,
    replies: Every,
    disputed: set[tuple[int, ReplyField]],
    subjects: Sequence[LabelledProgram],
) -> tuple[PublicCheck, ...]:
    """Return a public check for every hidden one that has recorded calls."""
    calls_by_outcome = {
        outcome: check_calls
        for outcome in recorded.outcomes
        if (check_calls := recorded.call_indices(outcome.id))
    }
    undisputed = {
        outcome.id: tuple(i for i in calls if (i, "outputs") not in disputed)
        for outcome, calls in calls_by_outcome.items()
    }
    # Who looks at numbers that are not there raises, and may.
    without_numbers = {
        i for i, expected in enumerate(recorded.fingerprints) if has_no_numbers(expected)
    }
    groups = {
        outcome.id: within(
            recorded.groups[outcome.id],
            [*undisputed[outcome.id], *without_numbers.intersection(calls)],
        )
        for outcome, calls in calls_by_outcome.items()
    }
    chosen = choose_all(groups, subjects)
    return tuple(
        PublicCheck(
            **{name: getattr(outcome, name) for name in ("id", "title", "layer", "hint", "points")},
            calls=undisputed[outcome.id],
            facets=_facets(undisputed[outcome.id], replies, disputed),
            **vars(chosen[outcome.id]),
        )
        for outcome in calls_by_outcome
    )


def _facets(
    calls: Sequence[int], replies: Every, disputed: set[tuple[int, ReplyField]]
) -> tuple[ReplyField, ...]:
    """Return "outputs", and the other facets that distinguish a mutant from the reference in these
    calls if outputs do not.
    """
    facets: list[ReplyField] = ["outputs"]
    reply_pairs = [(reply, replies[i][0]) for i in calls for reply in replies[i][1:]]
    for facet in REPLY_FIELDS[1:]:
        unseen = (
            o
            for o, expected in reply_pairs
            if o.agrees(expected, tuple(facets)) and not o.agrees(expected, (facet,))
        )
        if not any((i, facet) in disputed for i in calls) and any(unseen):
            facets.append(facet)
    return tuple(facets)
