"""Keep what is recorded of the mutants' answers as long as nothing has changed that it is made from: asking takes minutes.

A change of the engine's makes every exercise stale, and most such changes do not reach the mutants: the calls that are put
to them are made anew, and the same calls to the same code have the same answers.
"""

from __future__ import annotations

import hashlib

from ..course import Exercise
from ..course.neighbours import with_neighbours
from ..diagnosis.bank import load_bank
from ..diagnosis.pair_answers import Pairs
from ..diagnosis.table_file import structure_of
from ..public.file import Fingerprints, loaded, save
from ..submission.digest import code_digest
from .engine_digest import engine_digest
from .fingerprints import words_of
from .recorded import RecordedCalls
from .recordings import in_step

RECORDING = ("authoring.answers", "authoring.fingerprints")  # what asks the mutants, and makes the record of it


def recorded_from(exercise: Exercise, recorded: RecordedCalls, kills: bytes) -> str:
    """All that decides what is recorded of the mutants, as two digests: of the code, and of the calls. They lack the numbers
    in the calls and in the reference's answers, whose last bits depend on the processor: `kept_file` compares them.

    kills: the kill matrix's file.
    """
    digest = hashlib.sha256(repr((recorded.outcomes, recorded.asked_by)).encode())
    for call in recorded.calls:
        digest.update(structure_of(call))
    return f"{_code(exercise, kills)} {digest.hexdigest()}"


def may_be_kept(exercise: Exercise, was_recorded_from: str) -> bool:
    """Whether the record was made from the code that is there now. Whether from the same calls shows when they are made."""
    return was_recorded_from.partition(" ")[0] == _code(exercise, exercise.kill_matrix.read_bytes())


def _code(exercise: Exercise, kills: bytes) -> str:
    sources = [*exercise.mutant_sources()]
    for path in (exercise.solution, *exercise.right_attempts(), *exercise.wrong_attempts()):
        sources += with_neighbours(path)
    digest = hashlib.sha256(engine_digest(*RECORDING).encode() + hashlib.sha256(kills).digest())
    for path in sources:
        digest.update(f"{path.relative_to(exercise.root).as_posix()} ".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def kept_file(exercise: Exercise, stub: str, recorded: RecordedCalls, pairs: Pairs) -> bytes | None:
    """The fingerprint file that lies there, for the stub, the words and the pairs of today; None where its numbers are others.

    To be asked only where the file is as a release left it, with a digest that is still `recorded_from`.
    """
    there = exercise.fingerprints.read_bytes()
    known = loaded(there)
    content = known.content
    if not in_step(there, save(Fingerprints(content, recorded.calls, recorded.expected, known.pairs))):
        return None
    if not all(right.is_same(content.right(i)) for i, right in enumerate(recorded.right)):
        return None
    today = {"stub": code_digest(stub), "words": words_of(load_bank(exercise))}
    return save(Fingerprints(content.model_copy(update=today), recorded.calls, recorded.expected, pairs))
