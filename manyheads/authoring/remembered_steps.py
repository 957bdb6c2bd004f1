"""Remember the replies of trusted programs, so that a release repeats only changed steps.

Three results are remembered: the replies of one program to the recorded calls, the reply of two
combined mutants to one call, and the sweep of a parametric mutant. A result is found by a digest of
everything that decides it. Other digests are computed again, so a remembered result saves work and
changes nothing: a release without the file writes the same bytes.

The engine, the checks and the reference are in every digest. A change of the file of checks
therefore repeats the whole exercise, and a change of one mutant only that mutant and its pairs.

Example: `read_steps(path, exercise)` returns the results of the last release, and
`write_steps(path, steps)` writes those that this release has used.
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
import secrets
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Generic, TypeVar

import torch
from pydantic import BaseModel

from ..checks.hidden_check import Edit
from ..course import Exercise
from ..course.model import FOLDER, with_neighbours
from ..diagnosis.bank import Bank, BuiltMutant, ParametricMutant, Sweep, load_bank
from ..diagnosis.fault_dictionary import Oracle
from ..diagnosis.fingerprint import ReplyFingerprint
from ..files import digest_of, write_whole
from ..submission import Source
from .choose_visible_oracles import CallGroup, ViolatedOracles

ENGINE = Path(__file__).parents[1]
# packages that solutions and checks import, and whose next version may reply otherwise
_PACKAGES = ("torch", "numpy", "einops")
# tables of a bank's file; the digests of mutants have their rows
_TABLES = {"MUTANTS", "FAMILIES"}
_DIGEST_BYTES = 32  # a file begins with a SHA-256 of the rest

SketchRow = tuple[int, tuple[float, ...], float]  # of a `ReplySketch`: structure, numbers, scale
PairKey = tuple[str, str, int]  # the digests of both mutants, and the index of the call

Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass
class ProgramSteps:
    """The known results of a right attempt, a wrong attempt or a mutant.

    Attributes:
        replies: its replies to the recorded calls, or None if it has not run.
        in_single: the indices of the calls that it answered in float32.
        row: the outcomes of the hidden checks (`MutantRun.kill_row`), or "" if they have not run.
        violations: the oracles that it violates, or None if that is not known.
        fixed: the results of `RecordedCall.is_fixed`, by the index of the call and `keep_equal`.
    """

    replies: tuple[ReplyFingerprint, ...] | None = None
    in_single: frozenset[int] = frozenset()
    row: str = ""
    violations: ViolatedOracles | None = None
    fixed: dict[tuple[int, bool], bool] = field(default_factory=dict)

    @property
    def is_known_to_pass(self) -> bool:
        """Whether the hidden checks have run, and all passed."""
        return bool(self.row) and set(self.row) == {"0"}


class Results(Generic[Key, Value]):
    """Results by their key.

    Attributes:
        used: the results that were asked for, computed or remembered.
    """

    def __init__(self, earlier: Mapping[Key, Value] | None = None) -> None:
        self._earlier: Mapping[Key, Value] = earlier or {}
        self.used: dict[Key, Value] = {}

    def get(self, key: Key, compute: Callable[[], Value]) -> Value:
        """Return the result with this key. It is computed if it is not known."""
        if key not in self.used:
            self.used[key] = self._earlier[key] if key in self._earlier else compute()
        return self.used[key]


@dataclass
class EarlierResults:
    """The results of an earlier release, by digest."""

    programs: Mapping[str, ProgramSteps] = field(default_factory=dict)
    pairs: Mapping[PairKey, SketchRow | None] = field(default_factory=dict)
    sweeps: Mapping[str, Sweep] = field(default_factory=dict)


class RememberedSteps:
    """The results of an exercise, which are remembered or computed.

    Attributes:
        programs, pairs, sweeps: the results by digest.
    """

    def __init__(self, exercise: Exercise, earlier: EarlierResults | None = None) -> None:
        """Begin with these results, or with none. Raises CourseError if there is no bank."""
        earlier = earlier or EarlierResults()
        self.programs = Results(earlier.programs)
        self.pairs = Results(earlier.pairs)
        self.sweeps = Results(earlier.sweeps)
        self._digests = _Digests(exercise, load_bank(exercise))
        self._of_mutants = dict[BuiltMutant, str]()  # mutants are compared by identity

    def of_file(self, path: Path) -> ProgramSteps:
        """Return the known results of a right or a wrong attempt."""
        return self.programs.get(self._digests.of_file(path), ProgramSteps)

    def of_mutant(self, mutant: BuiltMutant) -> ProgramSteps:
        """Return the known results of a mutant. Two mutants with the same change share them."""
        return self.programs.get(self._of_mutant(mutant), ProgramSteps)

    def of_pair(
        self,
        mutant_a: BuiltMutant,
        mutant_b: BuiltMutant,
        call: int,
        run: Callable[[], SketchRow | None],
    ) -> SketchRow | None:
        """Return the sketch of the reply of two mutants to a call. `run` computes it.

        It is None if the two do not combine.
        """
        return self.pairs.get((self._of_mutant(mutant_a), self._of_mutant(mutant_b), call), run)

    def of_parametric_mutant(self, parametric: ParametricMutant, run: Callable[[], Sweep]) -> Sweep:
        """Return the sweep of a parametric mutant. `run` computes it."""
        return self.sweeps.get(self._digests.of_parametric_mutant(parametric), run)

    def _of_mutant(self, mutant: BuiltMutant) -> str:
        if mutant not in self._of_mutants:
            self._of_mutants[mutant] = self._digests.of_mutant(mutant)
        return self._of_mutants[mutant]


class _Digests:
    """Digests of the programs of an exercise, each of everything that decides their replies.

    Comments do not count, as in the key of a fault dictionary.
    """

    def __init__(self, exercise: Exercise, bank: Bank) -> None:
        _, self._reference = bank.reference
        conftest = exercise.checks.with_name("conftest.py")
        self._shared = digest_of_texts(
            environment_digest(),
            exercise.row.model_dump_json(include={"id", "shapes"}),
            *map(_code_of, (exercise.checks, conftest, exercise.solution)),
        )
        self._make_code = "" if bank.make is None else _make_code(exercise.misconceptions)

    def of_file(self, path: Path) -> str:
        """Return the digest of a right or a wrong attempt."""
        return digest_of_texts(self._shared, "file", _code_of(path))

    def of_mutant(self, mutant: BuiltMutant) -> str:
        """Return the digest of a mutant."""
        return digest_of_texts(self._shared, "mutant", self._text_of(mutant.change))

    def of_parametric_mutant(self, parametric: ParametricMutant) -> str:
        """Return the digest of a parametric mutant, which covers each of its recorded numbers."""
        texts = [parametric.id]
        for logarithm in parametric.grid:
            match parametric.knobs(math.exp(logarithm)):
                case {"edit": Edit() as change}:
                    texts.append(f"{logarithm} {self._text_of(change)}")
                case knobs:
                    texts.append(f"{logarithm} {self._text_of(knobs)}")
        return digest_of_texts(self._shared, "sweep", *texts)

    def _text_of(self, change: Edit | Mapping[str, object]) -> str:
        """Return a text that determines the program with this change.

        For an edit, it includes the edited code, because the marks of a solution may decide where
        the edit applies. The arguments of `make` must be literals. The text of another argument,
        such as a function, does not determine it. The digest is then random, and the program runs
        in every release.
        """
        if isinstance(change, Edit):
            edited = Source("", change.apply(self._reference))
            return f"{[*change.changes.items()]} {edited.code_digest}"
        arguments = repr(dict(change))
        try:
            ast.literal_eval(arguments)
        except (ValueError, SyntaxError):
            return secrets.token_hex()
        return f"{arguments} {self._make_code}"


def digest_of_texts(*texts: str) -> str:
    """Return one digest of these texts in this order."""
    return digest_of("\0".join(texts).encode())


def file_texts(root: Path, paths: Iterable[Path]) -> Iterator[str]:
    """Yield the names and the digests of files, in the order of their paths.

    Args:
        root: The folder that contains the files. Names are relative to it.
        paths: The files and folders. A folder has a name only. Python's caches do not count.
    """
    for path in sorted({*paths}):
        if "__pycache__" not in path.parts:
            yield path.relative_to(root).as_posix()
            yield digest_of(path.read_bytes()) if path.is_file() else ""


@cache
def environment_digest() -> str:
    """Return a digest of the engine, the versions of Python and packages, and the processor."""
    return digest_of_texts(
        sys.version,
        *(f"{name} {metadata.version(name)}" for name in _PACKAGES),
        torch.backends.cpu.get_cpu_capability(),
        *file_texts(ENGINE, ENGINE.rglob("*")),
    )


def _code_of(path: Path) -> str:
    """Return a digest of the code of a file and of the files that it imports.

    A missing file has the digest of no file.
    """
    return _digest_of_files(file for file in with_neighbours(path) if file.exists())


def _digest_of_files(paths: Iterable[Path]) -> str:
    sources = [Source(path.name, path.read_text(encoding="utf-8")) for path in paths]
    return digest_of_texts(*(source.code_digest for source in sources))


def _make_code(path: Path) -> str:
    """Return a digest of the code of a bank's `make`: the whole file without its tables.

    The tables count if other code of the file reads them.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))  # noqa: TID251  (no attempt's text)
    statements = [statement for statement in tree.body if not _assigns_table(statement)]
    without_tables = ast.Module(statements, [])
    names = {node.id for node in ast.walk(without_tables) if isinstance(node, ast.Name)}
    _, *neighbours = with_neighbours(path)
    code = ast.dump(tree if names & _TABLES else without_tables)
    return digest_of_texts(code, _digest_of_files(neighbours))


def _assigns_table(statement: ast.stmt) -> bool:
    """Return whether a statement is `MUTANTS = …` or `FAMILIES = …`."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name in _TABLES
    return False


class _StoredProgram(BaseModel):
    """A `ProgramSteps` in a file. Replies are indices of the file's different replies."""

    replies: list[int] | None = None
    in_single: list[int]
    row: str
    violations: list[tuple[Oracle, CallGroup]] | None = None
    fixed: list[tuple[int, bool, bool]]


class _StoredSweep(BaseModel):
    """A `Sweep` in a file, with lists in place of tensors."""

    id: str
    step: float
    calls: tuple[int, ...]
    forms: tuple[tuple[tuple[str, tuple[int, ...] | None, str], ...], ...]
    answers: list[list[list[float]]]
    detected_in: list[int]


class _StoredSteps(BaseModel):
    """The content of a file. A pair has the indices of its two mutants among `mutants`."""

    replies: list[ReplyFingerprint]
    programs: dict[str, _StoredProgram]
    mutants: list[str]
    pairs: list[tuple[int, int, int, SketchRow | None]]
    sweeps: dict[str, _StoredSweep]


def steps_file(exercise: Exercise) -> Path:
    """Return the path of the file with an exercise's results. Git ignores its folder."""
    return exercise.root / FOLDER / "release" / f"{exercise.id}.steps"


def read_steps(path: Path, exercise: Exercise) -> RememberedSteps:
    """Return the results in a file, or none if the file is missing, damaged or no such file.

    A file holds data only, because a course may come from anybody. Raises CourseError if there is
    no bank.
    """
    try:
        content = path.read_bytes()
        packed = content[_DIGEST_BYTES:]
        if hashlib.sha256(packed).digest() != content[:_DIGEST_BYTES]:
            return RememberedSteps(exercise)
        stored = _StoredSteps.model_validate_json(zlib.decompress(packed))
        earlier = _earlier_results(stored)
    except (OSError, zlib.error, ValueError, LookupError):
        return RememberedSteps(exercise)
    return RememberedSteps(exercise, earlier)


def _earlier_results(stored: _StoredSteps) -> EarlierResults:
    """Return the results. Raises LookupError or ValueError if an index or a table is wrong."""
    programs = dict[str, ProgramSteps]()
    for digest, program in stored.programs.items():
        steps = ProgramSteps(in_single=frozenset(program.in_single), row=program.row)
        if program.replies is not None:
            steps.replies = tuple([stored.replies[index] for index in program.replies])
        if program.violations is not None:
            steps.violations = frozenset(program.violations)
        for call, keep_equal, is_fixed in program.fixed:
            steps.fixed[call, keep_equal] = is_fixed
        programs[digest] = steps
    pairs = {
        (stored.mutants[index_a], stored.mutants[index_b], call): sketch
        for index_a, index_b, call, sketch in stored.pairs
    }
    sweeps = dict[str, Sweep]()
    for digest, sweep in stored.sweeps.items():
        answers = tuple([torch.tensor(rows, dtype=torch.float64) for rows in sweep.answers])
        detected_in = frozenset(sweep.detected_in)
        sweeps[digest] = Sweep(sweep.id, sweep.step, sweep.calls, sweep.forms, answers, detected_in)
    return EarlierResults(programs, pairs, sweeps)


def write_steps(path: Path, steps: RememberedSteps) -> None:
    """Write the results that were used; others are dropped. Equal results give equal bytes."""
    replies = _DifferentReplies()
    programs = dict[str, _StoredProgram]()
    for digest, program in steps.programs.used.items():
        stored_program = _StoredProgram(
            in_single=sorted(program.in_single),
            row=program.row,
            fixed=[(*key, is_fixed) for key, is_fixed in program.fixed.items()],
        )
        if program.replies is not None:
            stored_program.replies = [*map(replies.index, program.replies)]
        if program.violations is not None:
            stored_program.violations = sorted(program.violations)
        programs[digest] = stored_program
    indices = {digest: index for index, digest in enumerate(programs)}
    stored = _StoredSteps(
        replies=replies.every,
        programs=programs,
        mutants=[*programs],
        pairs=[
            (indices[digest_a], indices[digest_b], call, sketch)
            for (digest_a, digest_b, call), sketch in steps.pairs.used.items()
        ],
        sweeps={digest: _stored_sweep(sweep) for digest, sweep in steps.sweeps.used.items()},
    )
    # not pydantic's JSON, which writes null for NaN
    packed = zlib.compress(json.dumps(stored.model_dump(), separators=(",", ":")).encode())
    # the folder of the course's secret, which others may not read
    path.parents[1].mkdir(mode=0o700, exist_ok=True)
    write_whole(path, hashlib.sha256(packed).digest() + packed)


def _stored_sweep(sweep: Sweep) -> _StoredSweep:
    return _StoredSweep(
        id=sweep.id,
        step=sweep.step,
        calls=sweep.calls,
        forms=sweep.forms,
        answers=[answer.tolist() for answer in sweep.answers],
        detected_in=sorted(sweep.detected_in),
    )


class _DifferentReplies:
    """Different replies, each with its index in `every`."""

    def __init__(self) -> None:
        self.every = list[ReplyFingerprint]()
        self._indices = dict[str, int]()

    def index(self, reply: ReplyFingerprint) -> int:
        """Return the index of a reply, which is added if it is new."""
        key = repr(reply)
        if key not in self._indices:
            self._indices[key] = len(self.every)
            self.every.append(reply)
        return self._indices[key]
