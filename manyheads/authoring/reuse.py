"""Keep what is recorded of the mutants' answers as long as nothing has changed that it is made from: asking takes minutes.

A change of the engine's makes every exercise stale, and most such changes do not reach the mutants: the calls that are put
to them are made anew, and the same calls to the same code have the same answers.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

from torch import Tensor

from ..box.worker import wire
from ..box.worker.messages import Call
from ..course import Exercise
from ..course.model import with_neighbours
from ..diagnosis.bank import load_bank
from ..diagnosis.fingerprint import STORED
from ..diagnosis.recording import Fingerprints
from ..diagnosis.recording_file import KillMatrix, key_of, loaded, read_kill_matrix, save
from ..submission.source_text import code_digest
from .compare_recordings import is_same_but_for_answers
from .engine_digest import engine_digest
from .fingerprints import words_of
from .public_calls import RecordedCalls

RECORDING = ("authoring.mutant_answers", "authoring.fingerprints")  # what asks the mutants, and makes the record of it


def recorded_from(exercise: Exercise, recorded: RecordedCalls, kills: KillMatrix) -> str:
    """Return all that decides what is recorded of the mutants, as two digests: of the code, and of the calls.

    They lack the numbers in the calls and in the reference's answers, whose last bits depend on the processor:
    `kept_file` compares them.
    """
    digest = hashlib.sha256(repr((recorded.outcomes, recorded.asked_by, recorded.nth)).encode())
    for call in recorded.calls:
        digest.update(_structure_of(call))
    return f"{_code(exercise, kills)} {digest.hexdigest()}"


def may_be_kept(exercise: Exercise, was_recorded_from: str) -> bool:
    """Return whether the record was made from the code that is there now. Whether from the same calls shows when they are made."""
    kills = read_kill_matrix(exercise)
    return kills is not None and was_recorded_from.partition(" ")[0] == _code(exercise, kills)


def _code(exercise: Exercise, kills: KillMatrix) -> str:
    sources = [*exercise.mutant_sources()]
    for path in (exercise.solution, *exercise.right_attempts(), *exercise.wrong_attempts()):
        sources += with_neighbours(path)
    digest = hashlib.sha256(engine_digest(*RECORDING).encode() + repr(kills).encode())
    for path in sources:
        digest.update(f"{path.relative_to(exercise.root).as_posix()} ".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _structure_of(call: Call) -> bytes:
    """Return the content of a call without its floats, whose last bits depend on the processor."""
    tensors: list[Tensor] = []
    body = json.dumps(wire.to_body(call, tensors))
    seen = [f"{t.dtype} {tuple(t.shape)} {'' if t.is_floating_point() else t.tolist()}" for t in tensors]
    return "; ".join([body, *seen]).encode()


def kept_file(exercise: Exercise, stub: str, recorded: RecordedCalls) -> bytes | None:
    """Return the fingerprint file that lies there, for the stub and the words of today; None where its numbers are others.

    To be asked only where the file is as a release left it, with a digest that is still `recorded_from`.
    """
    known = loaded(exercise.fingerprints.read_bytes())
    content = known.content
    if not is_same_but_for_answers(known, replace(known, calls=recorded.calls, expected=recorded.expected)):
        return None
    if not all(right.is_same(content.right(i), tolerance=STORED) for i, right in enumerate(recorded.right)):
        return None
    today = replace(content, stub=code_digest(stub), words=words_of(load_bank(exercise)))
    return save(Fingerprints(today, recorded.calls, recorded.expected, known.pairs, key_of(exercise), recorded.drawn))
