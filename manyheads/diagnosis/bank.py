"""The bank of an exercise: mutants, parametric mutants, and texts of misconceptions.

`load_bank` reads the bank's file in grader/misconceptions and makes the mutants: it edits the text
of the reference, or calls the file's `make`. A parametric mutant has a free number, for example a
constant in place of a scale; the file lists it among its FAMILIES. A `Diagnosis` has the
misconceptions to report.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any

import torch
import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, RootModel, ValidationError
from torch import Tensor

from ..checks.hidden_check import Edit, EditError, Mutant
from ..checks.runner import BrokenReference, namespace_of, namespace_of_source
from ..course import CourseError, Exercise
from ..course.model import read_model
from ..files import CourseFault, describe_error, location_of_error
from ..result import Diagnosed
from ..submission import Source
from .compact_storage import from_rows, frozen, to_rows
from .fingerprint import PROJECTIONS, ReplyFingerprint
from .observed_reply import Direction

Namespace = Mapping[str, object]
# For each output of a reply, its fingerprint without the numbers.
OutputForm = tuple[tuple[Any, ...], ...]

POINTS = 97  # numbers of a parametric mutant that are recorded, evenly spaced in their logarithms
_NONE = -32768  # in a file, in place of the numbers of an answer with another form


@dataclass(frozen=True, eq=False)
class ParametricMutant:
    """A mutant with a positive number as its parameter.

    Attributes:
        id: the misconception.
        knobs: returns the arguments of `make` for a number.
        low, high: the smallest and the largest number.
        make: makes the mutant; the bank's `make`, or a function that applies an edit.
    """

    id: str
    knobs: Callable[[float], Mapping[str, object]]
    low: float
    high: float
    make: Callable[..., Namespace] = field(repr=False)

    @property
    def grid(self) -> tuple[float, ...]:
        """The logarithms of the POINTS numbers that are recorded, from `low` to `high`."""
        return tuple(math.log(self.low) + self.step * position for position in range(POINTS))

    @property
    def step(self) -> float:
        """The difference of two neighbouring logarithms in the grid."""
        return math.log(self.high / self.low) / (POINTS - 1)

    def mutant(self, logarithm: float) -> Namespace:
        """Return the namespace of the mutant whose number has this logarithm."""
        return self.make(**self.knobs(math.exp(logarithm)))


@dataclass(frozen=True)
class Sweep:
    """The replies of a parametric mutant to a few calls, for each of its recorded numbers.

    Attributes:
        step: the difference of the logarithms of two neighbouring numbers.
        calls: the recorded calls, by their index.
        forms: for each call the form of the answers.
        answers: for each call (points, N) projections, one row for each number. NaN if the answer
            has another form.
        detected_in: all recorded calls that detect the mutant with at least one of the numbers.
    """

    id: str
    step: float
    calls: tuple[int, ...]
    forms: tuple[OutputForm, ...]
    answers: tuple[Tensor, ...]
    detected_in: frozenset[int]


def form_of(reply: ReplyFingerprint) -> OutputForm:
    """Return the fingerprints of the outputs without their numbers."""
    return tuple((output.kind, output.shape, output.extremes) for output in reply.outputs)


def projections_of(reply: ReplyFingerprint) -> list[float]:
    """Return the projections of all outputs."""
    return [number for output in reply.outputs for number in output.projections]


def sweeps_to_columns(sweeps: Sequence[Sweep]) -> tuple[list[object], dict[str, Tensor]]:
    """Return the sweeps as entries of a file's body, and the columns with their numbers."""
    if not sweeps:
        return [], {}
    rows = torch.cat(
        [answer.reshape(-1, PROJECTIONS) for sweep in sweeps for answer in sweep.answers]
    )
    integers, sizes = to_rows(rows.nan_to_num(0.0))
    projections = integers.masked_fill(rows.isnan(), _NONE).T  # one direction after the other
    body: list[object] = []
    for sweep in sweeps:
        shapes = [list(answer.shape) for answer in sweep.answers]
        entry = [sweep.id, sweep.step, sweep.calls, sweep.forms, shapes, sorted(sweep.detected_in)]
        body.append(entry)
    return body, {"curves.projections": projections, "curves.sizes": sizes}


def sweeps_from_columns(body: Sequence[Any], columns: Mapping[str, Tensor]) -> tuple[Sweep, ...]:
    """Rebuild the sweeps from the body and the columns of a recorded file.

    Raises LookupError, RuntimeError or ValueError if the file is damaged.
    """
    if not body:
        return ()
    integers = columns["curves.projections"].T
    flat = (
        from_rows(integers, columns["curves.sizes"])
        .masked_fill(integers == _NONE, torch.nan)
        .flatten()
    )
    chunks = iter(flat.split([math.prod(shape) for *_, shapes, _ in body for shape in shapes]))
    sweeps = []
    for id_, step, calls, forms, shapes, detected_in in body:
        answers = tuple([next(chunks).view(shape) for shape in shapes])
        sweep = Sweep(id_, step, tuple(calls), frozen(forms), answers, frozenset(detected_in))
        sweeps.append(sweep)
    return tuple(sweeps)


def _three_hints(hints: tuple[str, ...]) -> tuple[str, ...]:
    """Return the hints. Raises ValueError unless there are three."""
    if len(hints) != 3:
        raise ValueError("needs three hints: a question, a pointer, and almost the answer")
    return hints


class _Words(BaseModel):
    """Texts in a file. One that is None is taken from another source (see `_text`)."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    title: str | None = None
    explanation: str | None = None
    hints: Annotated[tuple[str, ...], AfterValidator(_three_hints)] | None = None


class _Text(_Words):
    """The texts of a misconception in a file. Those in `overrides` hold for one exercise, by id."""

    shows: Direction | None = None
    overrides: dict[str, _Words] = {}


class _TextFile(RootModel[dict[str, _Text]]):
    """A file of texts by misconception."""


class MisconceptionText(BaseModel):
    """The texts about a misconception that a student reads.

    Attributes:
        hints: a question, a pointer, and almost the answer.
        shows: a property that a wrong answer must have before a violated oracle alone can name the
            misconception.
    """

    model_config = ConfigDict(frozen=True)
    title: str
    explanation: str
    hints: tuple[str, str, str]
    shows: Direction | None = None


@dataclass(frozen=True, eq=False)
class BuiltMutant:
    """A mutant with the code that its change of the reference makes.

    Attributes:
        id: the misconception.
        change: an edit of the reference, or arguments for the bank's `make`.
        namespace: the names that the changed code defines.
        edited_text: the changed text of the reference, or "" for a mutant that `make` makes.
    """

    id: str
    change: Edit | Mapping[str, object]
    namespace: Namespace = field(repr=False, compare=False)
    edited_text: str = field(default="", repr=False, compare=False)

    @property
    def faults(self) -> Mapping[str, object]:
        """The new text for each changed text of the reference, or the arguments of `make`."""
        return self.change.changes if isinstance(self.change, Edit) else self.change


@dataclass(frozen=True)
class Bank:
    """The mutants of one exercise, most likely first, and the texts of all misconceptions.

    Attributes:
        make: returns a mutant's namespace for its arguments. None if all mutants are edits.
        mutants: the mutants, most likely first.
        texts: the texts by misconception.
        reference: the path and the source text of the reference.
        parametric_mutants: the mutants of the bank's table FAMILIES.
    """

    make: Callable[..., Namespace] | None
    mutants: tuple[BuiltMutant, ...]
    texts: Mapping[str, MisconceptionText]
    reference: tuple[Path, str] = field(default=(Path(), ""), repr=False, compare=False)
    parametric_mutants: tuple[ParametricMutant, ...] = ()

    def combine(self, first: BuiltMutant, second: BuiltMutant) -> Namespace | None:
        """Return an attempt with the changes of both mutants, or None if they do not combine.

        Two edits do not combine if they overlap, or if the text with both cannot be imported. Two
        mutants of `make` do not combine if both change the same argument; `make` may raise any
        exception. An edit never combines with a mutant of `make`.
        """
        if isinstance(first.change, Edit) and isinstance(second.change, Edit):
            path, source = self.reference
            edited = with_both_edits(source, first.change, second.change)
            if edited is None:
                return None
            try:
                return namespace_of_source(without_main_parts(edited, source), path)
            except BrokenReference:  # each edit runs on its own, but not both together
                return None
        if isinstance(first.change, Edit) or isinstance(second.change, Edit) or self.make is None:
            return None
        if first.change.keys() & second.change.keys():
            return None
        return self.make(**first.change, **second.change)


def with_both_edits(reference_text: str, edit_a: Edit, edit_b: Edit) -> str | None:
    """Return the reference with two edits, or None if they change the same text.

    One edit may keep the text that the other one changes, as it does if it inserts a line. Then the
    order matters, so both orders are tried.
    """
    if edit_a.changes.keys() & edit_b.changes.keys():
        return None
    for earlier, later in ((edit_a, edit_b), (edit_b, edit_a)):
        try:
            return later.apply(earlier.apply(reference_text))
        except EditError:
            continue
    return None


def without_main_parts(edited_text: str, reference_text: str) -> str:
    """Return an edited reference with empty lines in place of the parts in `main_parts`.

    Such a part has no effect in a mutant, but the parts are most of a lesson's code: without them,
    the text compiles four times as fast. All other lines keep their numbers. A part that the edit
    has changed stays.
    """
    for main_part in main_parts(reference_text):
        edited_text = edited_text.replace(main_part, "\n" * main_part.count("\n"))
    return edited_text


@lru_cache(maxsize=64)
def main_parts(trusted_text: str) -> tuple[str, ...]:
    """Return the text of each `if __name__ == "__main__":` statement that has no `else`.

    Return () if Python cannot parse the text.
    """
    lines = trusted_text.split("\n")
    return tuple(
        "\n".join(lines[statement.lineno - 1 : statement.end_lineno]) + "\n"
        for statement in Source("", trusted_text).tree
        if isinstance(statement, ast.If)
        and not statement.orelse
        and ast.unparse(statement.test) == "__name__ == '__main__'"
    )


@lru_cache(maxsize=64)
def load_bank(exercise: Exercise) -> Bank:
    """Load the bank of an exercise. Raises CourseError.

    If the file with the mutants is missing, the bank has only the texts.
    """
    path, reference = exercise.misconceptions, exercise.solution
    texts = _texts(exercise.root / "grader" / "texts.yaml", exercise.id)
    if not path.exists():
        return Bank(None, (), texts)
    names = namespace_of(path)
    make, listed = names.get("make"), names.get("MUTANTS")
    if not isinstance(listed, tuple):
        raise CourseError(
            f"{path} needs a tuple MUTANTS. Next: add one, then course verify {exercise.id}"
        )
    source = reference.read_text(encoding="utf-8") if reference.exists() else ""
    bank = Bank(make if callable(make) else None, (), texts, (reference, source))
    parametric_mutants = _parametric_mutants(exercise, bank, names.get("FAMILIES", ()))
    mutants = tuple(
        _mutant(exercise, bank, *_row_of(exercise, "MUTANTS", index, row))
        for index, row in enumerate(listed)
    )
    return replace(bank, mutants=mutants, parametric_mutants=parametric_mutants)


# For each table the form of a row, and the number of its values
_ROWS = {
    "MUTANTS": ("a Mutant, or a tuple of an id and an edit", 2),
    "FAMILIES": ("a tuple of an id, a function, and two limits", 3),
}


def _row_of(exercise: Exercise, table: str, index: int, row: object) -> tuple[Any, ...]:
    """Return a row of MUTANTS or FAMILIES; for a `Mutant`, its id and its change.

    Raises CourseError, with the row's number in the table, if the row is no tuple of the right
    length, or if its id or a mutant's change has another type.

    Args:
        exercise: The exercise, for the message.
        table: "MUTANTS" or "FAMILIES".
        index: The index of the row in the table.
        row: The row as the file has it.
    """
    form, length = _ROWS[table]
    if isinstance(row, Mutant) and table == "MUTANTS":
        row = (row.id, row.change)
    if (
        isinstance(row, tuple)
        and len(row) == length
        and isinstance(row[0], str)
        and (table == "FAMILIES" or isinstance(row[1], Edit | Mapping))
    ):
        return row
    excerpt = repr(row)[:60]  # a source text in it may be long
    problem = (
        f"{exercise.misconceptions}: row {index + 1} of {table} is {excerpt}, and should be {form}"
    )
    raise CourseError(f"{problem}. Next: mend that row, then course verify {exercise.id}")


def _change_of(mutant: Mutant | Edit | Mapping[str, object]) -> Edit | Mapping[str, object]:
    return mutant.change if isinstance(mutant, Mutant) else mutant


def _parametric_mutants(
    exercise: Exercise, bank: Bank, listed: object
) -> tuple[ParametricMutant, ...]:
    """Return the parametric mutants of FAMILIES.

    Raises CourseError if it is no tuple, if a row has another form, or if a row needs a missing
    `make`.
    """
    path, again = exercise.misconceptions, f"then course verify {exercise.id}"
    if not isinstance(listed, tuple):
        raise CourseError(f"{path}: FAMILIES is not a tuple. Next: make it one, {again}")
    _, source = bank.reference
    parametric_mutants = []
    for index, row in enumerate(listed):
        id_, change, (low, high) = _row_of(exercise, "FAMILIES", index, row)
        if isinstance(_change_of(change(low)), Edit):
            knobs = partial(lambda change, number: {"edit": _change_of(change(number))}, change)
            make_edited = partial(_edited_namespace, exercise, id_, source)
            parametric_mutants.append(ParametricMutant(id_, knobs, low, high, make_edited))
        elif bank.make is None:
            problem = (
                f"{path}: FAMILIES have knobs, so a function make(**knobs) is needed. Next: "
                f"add it, {again}"
            )
            raise CourseError(problem)
        else:
            parametric_mutants.append(ParametricMutant(id_, change, low, high, bank.make))
    return tuple(parametric_mutants)


def _mutant(
    exercise: Exercise, bank: Bank, id_: str, change: Edit | Mapping[str, object]
) -> BuiltMutant:
    """Return the mutant of a row of MUTANTS.

    Raises CourseError if `make` is missing or raises, or if the edit cannot be made or its text
    cannot be imported.
    """
    path, (reference, source) = exercise.misconceptions, bank.reference
    again = f"then course verify {exercise.id}"
    if not isinstance(change, Edit):
        if bank.make is None:
            raise CourseError(
                f"{path}: {id_} has knobs, so a function make(**knobs) is needed. Next: add it, "
                f"{again}"
            )
        try:
            return BuiltMutant(id_, change, bank.make(**change))
        except Exception as error:
            knobs = ", ".join(f"{name}={value!r}" for name, value in change.items())
            problem = f"make({knobs}) raises {type(error).__name__}: {error}"
            raise CourseError(
                f"{path}: the mutant {id_}: {problem}. Next: mend make or the knobs, {again}"
            ) from error
    try:
        edited = change.apply(source)
    except EditError as error:
        raise CourseError(
            f"{path}: {id_} edits {reference.name}: {error}. Next: copy the text from there, with "
            f"more of its line, {again}"
        ) from None
    return BuiltMutant(id_, change, _edited_namespace(exercise, id_, source, change), edited)


def _edited_namespace(exercise: Exercise, id_: str, reference_text: str, edit: Edit) -> Namespace:
    """Return the namespace of the edited reference.

    Raises CourseError, which blames the mutant, if the edited text cannot be imported. Raises
    BrokenReference, which blames the reference, if the text cannot be imported without the edit,
    either. Raises EditError if the edit cannot be made.
    """
    reference, edited = exercise.solution, edit.apply(reference_text)
    try:
        return namespace_of_source(without_main_parts(edited, reference_text), reference)
    except BrokenReference as broken:
        namespace_of_source(reference_text, reference)  # raises if the reference is to blame
        cause = broken.__cause__
        _, line = location_of_error(cause, lambda file: file == reference) or (reference, 0)
        lines = edited.splitlines()
        location = (
            f" (line {line}: {lines[line - 1].strip()!r})" if line and line <= len(lines) else ""
        )
        problem = f"{reference.name} with its edit{location} raises {describe_error(cause)}"
        again = f"then course verify {exercise.id}"
        raise CourseError(
            f"{exercise.misconceptions}: the mutant {id_}: {problem}. Next: mend its edit, {again}"
        ) from broken


def _texts(path: Path, exercise: str) -> dict[str, MisconceptionText]:
    """Return the texts by misconception.

    The engine has texts for the misconceptions that it names itself. A text of the course is
    preferred to one of the engine, and a text of the course for this exercise to both.
    """
    engine, course = _read(Path(__file__).with_name("texts.yaml")), _read(path)
    texts = {}
    for id_ in {**course, **engine}:
        words = course.get(id_, _Text())
        words_of_exercise = words.overrides.get(exercise, _Words())
        texts[id_] = _text(words_of_exercise, words, engine.get(id_, _Text()))
    return texts


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A loader of YAML's safe values that refuses a key which a mapping has already.

    The first value of the key would be lost.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping. Raises CourseError, with the line, if it has a key twice."""
        keys = set[str]()
        for key, _ in node.value:
            if key.value in keys:
                location = f"{key.start_mark.name}:{key.start_mark.line + 1}"
                problem = f"{location}: {key.value} stands there already, further above"
                raise CourseError(f"{problem}. Next: mend that line, then course verify")
            keys.add(key.value)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return mapping


def _read(path: Path) -> dict[str, _Text]:
    """Return the texts of a file by misconception, or none without a file. Raises CourseError."""
    if not path.exists():
        return {}
    try:
        with path.open("rb") as file:
            return _TextFile.model_validate(yaml.load(file, Loader=_Loader) or {}).root
    except (yaml.YAMLError, ValidationError):
        pass
    try:  # again, with a reader that takes seconds but names the line and the key
        return read_model(path, _TextFile, "course verify")[0].root
    except CourseFault as error:
        raise CourseError(str(error)) from None


def _text(*sources: _Words) -> MisconceptionText:
    """Return a misconception's text. Each field is taken from the first source that has it.

    Without a source the title, the explanation and the hints are empty.
    """
    fields: dict[str, object] = {"title": "", "explanation": "", "hints": ("", "", "")}
    for words in reversed(sources):
        fields |= {name: value for name, value in words if value}
    return MisconceptionText.model_validate(fields)


AllWords = Mapping[str, MisconceptionText]  # the texts of each misconception, by its id


@dataclass(frozen=True)
class Diagnosis:
    """The misconceptions that the replies of an attempt show.

    Attributes:
        named: the misconceptions that explain the attempt, most likely first; empty if everything
            passed or nothing explains it.
        also: misconceptions that are proven but do not explain the wrong values. It is empty unless
            nothing explains these.
        together: the ids, among `named`, that explain the values only together, as two mistakes.
        answers: a digest of the wrong replies, which attempts with the same mistake share.
    """

    named: tuple[Diagnosed, ...] = ()
    also: tuple[Diagnosed, ...] = ()
    together: tuple[str, ...] = ()
    answers: str = ""

    @property
    def misconceptions(self) -> tuple[Diagnosed, ...]:
        """All misconceptions, `named` before `also`."""
        return (*self.named, *self.also)


NOTHING = Diagnosis()


def misconception_in_words(
    words: AllWords, id_: str, alternatives: tuple[str, ...] = ()
) -> Diagnosed:
    """Return a misconception with its title and first hint.

    Without a text, the title is the id with spaces, and the hint is "".
    """
    text = words.get(id_)
    title, hint = (id_.replace("_", " "), "") if text is None else (text.title, text.hints[0])
    return Diagnosed(id=id_, title=title, hint=hint, alternatives=alternatives)


def diagnosis_of(words: AllWords, id_: str) -> Diagnosis:
    """Return the diagnosis of one misconception."""
    return Diagnosis((misconception_in_words(words, id_),))
