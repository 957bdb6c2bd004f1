"""Run a right attempt, a wrong attempt or a mutant for the fault dictionary.

`TrustedProgram` holds such a program and its known results. It runs the program only for a result
that is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from io import StringIO

from ..box.worker import wire
from ..box.worker.messages import Call, Reply
from ..checks.runner import (
    Exchange,
    LocalRecordingRunner,
    LocalRunner,
    reply_in_default_dtype,
)
from ..course import Exercise
from ..diagnosis.bank import Namespace
from ..diagnosis.fingerprint import ReplyFingerprint, comparable_fingerprint
from ..diagnosis.observed_reply import ObservedReply, summarise_copies
from ..judge.attempt_runner import ReplayCache
from ..judge.run_hidden_checks import Catalogue
from .choose_recorded_calls import PUBLIC, RecordedCalls
from .choose_visible_oracles import Groups, ViolatedOracles, oracles_violated_by
from .remembered_steps import ProgramSteps


@dataclass(frozen=True)
class Asked:
    """A reply of trusted code, treated like the reply of an attempt.

    Attributes:
        observed: The recorded form of the reply, with the expected one.
        full_reply: The reply itself. For a call on many copies of an input, it has the outputs of
            all copies, and the recorded form only the extremes.
        is_in_single: Whether the call was made in float32, because a dtype made float64 raise.
    """

    observed: ObservedReply
    full_reply: Reply
    is_in_single: bool


class _Witness(LocalRecordingRunner):
    """Runs trusted code for the hidden checks, without executing recorded calls again."""

    def __init__(
        self, namespace: Namespace, memory: ReplayCache, recorded_replies: Mapping[int, Reply]
    ) -> None:
        super().__init__(namespace)
        self._memory, self._known = memory, recorded_replies  # its replies, by the ids of the calls

    def execute(self, call: Call) -> Reply:
        """Return the reply to a call, and record it.

        Equal replies are one object (see `ReplayCache.read`). The replay cache uses its `id()` as
        the key for the next step of the check.
        """
        reply = self._known.get(id(call)) or reply_in_default_dtype(
            self._runner, call, self._runner.execute(call)
        )
        read = self._memory.read(wire.encode(reply)[wire.LENGTH.size :])
        self.transcript.append(Exchange(self.check, call, read))
        return read


class MutantRun:
    """Run the hidden checks, on public inputs, on code that has answered the recorded calls."""

    def __init__(self, catalogue: Catalogue, exercise: Exercise, recorded: RecordedCalls) -> None:
        self._catalogue, self._exercise, self._held = catalogue, exercise, recorded.calls
        self._reference = catalogue.remembering_reference(exercise)

    def kill_row(self, namespace: Namespace, answers: Sequence[Asked]) -> str:
        """Run the hidden checks, and return a text with one digit for each check, in their order.

        0: the check passed. 1: it failed. 2: it passed, but the pass was withdrawn because a
        condition is not met.

        Args:
            namespace: The code.
            answers: The code's replies to the recorded calls. These calls are not repeated.
        """
        memory = self._reference.memory
        memory.begin_attempt()  # before calls are held, for it may forget them
        self._held = tuple(map(memory.hold, self._held))
        witness = _Witness(
            namespace,
            memory,
            {id(c): a.full_reply for c, a in zip(self._held, answers, strict=True)},
        )
        with silenced():
            ends = self._catalogue.run(
                self._exercise, witness, self._reference, PUBLIC, self._exercise.id
            )
        return "".join(
            "0" if outcome.outcome == "passed" else "12"[outcome.trivial_answer] for outcome in ends
        )


@contextmanager
def silenced() -> Iterator[None]:
    """Discard prints and warnings of trusted code."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        yield


def answers_of(recorded: RecordedCalls, namespace: Namespace) -> list[Asked]:
    """Run trusted code on each recorded call, and return its replies. Prints are discarded."""
    answers = []
    with silenced():
        for i, recorded_call in enumerate(recorded.entries):
            call, raw_reply = recorded_call.call, recorded_call.full_reply(namespace)
            full_reply = reply_in_default_dtype(LocalRunner(namespace), call, raw_reply)
            reply, expected = summarise_copies(call, full_reply), recorded.fingerprints[i]
            actual = comparable_fingerprint(expected, call, reply)
            observed = ObservedReply(call, expected, recorded.expected[i], reply, actual)
            answers.append(Asked(observed, full_reply, full_reply is not raw_reply))
    return answers


class TrustedProgram:
    """A right attempt, a wrong attempt or a mutant. It runs only for results that are not known."""

    def __init__(self, namespace: Namespace, recorded: RecordedCalls, steps: ProgramSteps) -> None:
        """Hold a program.

        Args:
            namespace: Its code.
            recorded: The calls to answer.
            steps: Its known results. New ones are added.
        """
        self._namespace, self._recorded, self._steps = namespace, recorded, steps

    @cached_property
    def _answers(self) -> list[Asked]:
        return answers_of(self._recorded, self._namespace)

    @property
    def replies(self) -> tuple[ReplyFingerprint, ...]:
        """The fingerprints of its replies to the recorded calls."""
        if self._steps.replies is None:
            in_single = [i for i, answer in enumerate(self._answers) if answer.is_in_single]
            self._steps.in_single = frozenset(in_single)
            self._steps.replies = tuple(answer.observed.actual for answer in self._answers)
        return self._steps.replies

    def kill_row(self, mutant_run: MutantRun) -> str:
        """Return the outcomes of the hidden checks, from `MutantRun.kill_row`."""
        if not self._steps.row:
            self._steps.row = mutant_run.kill_row(self._namespace, self._answers)
        return self._steps.row

    def violations(self, groups: Sequence[Groups]) -> ViolatedOracles:
        """Return the oracles that it violates, in these groups of calls."""
        if self._steps.violations is None:
            observations = [answer.observed for answer in self._answers]
            self._steps.violations = oracles_violated_by(observations, groups)
        return self._steps.violations

    def is_fixed(self, index: int, keep_equal: bool) -> bool:
        """Return whether neither chance nor rounding decides its reply to a recorded call.

        See `RecordedCall.is_fixed`.
        """
        reply, expected = self.replies[index], self._recorded.fingerprints[index]
        if (index, keep_equal) not in self._steps.fixed:
            call = self._recorded.entries[index]
            if index in self._steps.in_single:
                call = call.in_single()
            is_fixed = call.is_fixed(self._namespace, reply, expected, keep_equal)
            self._steps.fixed[index, keep_equal] = is_fixed
        return self._steps.fixed[index, keep_equal]

    def is_drawn(self, index: int) -> bool:
        """Return whether chance may decide the reply to a recorded call."""
        return self._recorded.entries[index].is_drawn
