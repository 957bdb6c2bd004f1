"""Save and read a fault dictionary: a safetensors file of columns, which holds data only.

`save` makes the bytes, and `read`, `load` and `current` rebuild the FaultDictionary. Replies have
few structures (shapes, kinds, names of gradients) and many numbers. A reply is stored as the index
of its structure. The numbers of all replies are stored together, in columns.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, chain
from operator import getitem
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from ..box.worker import wire
from ..box.worker.messages import Call
from ..checks.explain_exceptions import KINDS
from ..checks.hidden_check import Drawn
from ..checks.preconditions import LeftOut
from ..course import CourseError, Exercise
from ..files import restore
from ..submission import Source
from .bank import MisconceptionText, sweeps_from_columns, sweeps_to_columns
from .compact_storage import (
    TensorColumns,
    from_rows,
    from_sizes,
    frozen,
    narrow,
    pairs_from_columns,
    pairs_to_columns,
    read_tensors,
    to_rows,
    to_sizes,
)
from .fault_dictionary import (
    FaultDictionary,
    PublicCheck,
    RecordedCondition,
    RecordedMutant,
    StepWeights,
)
from .fingerprint import PLAIN, PROJECTIONS, ReplyFingerprint, TensorFingerprint
from .observed_reply import Expected

FORMAT = 12  # increase it if the format or the recorded values change
_LENGTH_BYTES = 8  # a safetensors file begins with the length of its JSON header
_RANDOM = -1  # stands for the index of a reply that is nondeterministic


def key_of(exercise: Exercise) -> str:
    """Return a hash of everything that an exercise's fault dictionary is made from, without texts.

    The only parts of the engine in it are the format's number and the known kinds of exceptions.
    """
    paths = [path for path in exercise.recorded_from() if path.exists()]
    sources = [Source(path.name, path.read_text(encoding="utf-8")) for path in paths]
    texts = [f"{source.name} {source.code_digest}" for source in sources]
    texts += [exercise.row.model_dump_json(include={"hint", "shapes"})]
    texts += [
        f"{error_kind.type} {error_kind.pattern.pattern} {error_kind.meaning}"
        for error_kind in KINDS
    ]
    return hashlib.sha256("\0".join([str(FORMAT), *texts]).encode()).hexdigest()


def save(recording: FaultDictionary) -> bytes:
    """Return the bytes of the file, which are the same for the same content. `load` reads them."""
    columns = TensorColumns(recording.drawn)
    replies, reply_columns = _replies_body(recording.replies)
    calls = [_call_as_json(call, columns) for call in recording.calls]
    expected = [_stored_outputs(outputs, columns) for outputs in recording.expected]
    conditions = [_stored_condition(condition, columns) for condition in recording.conditions]
    tensor_columns = columns.columns()
    sweeps, sweep_columns = sweeps_to_columns(recording.sweeps)
    weights, weight_columns = _stored_weights(recording.weights)
    body = {
        "format": FORMAT,
        "key": recording.key,
        "exercise": recording.exercise,
        "stub": recording.stub,
        "checks": [
            check.model_dump(exclude_defaults=True, by_alias=True) for check in recording.checks
        ],
        "words": _stored_words(recording.words),
        "mutants": [mutant.id for mutant in recording.mutants],
        "hidden": recording.hidden,
        "kills": recording.kills,
        "replies": replies,
        "calls": calls,
        "expected": expected,
        "drawn": recording.drawn,
        "tensors": columns.specs,
        "conditions": conditions,
        **({"curves": sweeps} if sweeps else {}),
    }
    if weights:
        body["weights"] = weights
    indices = [
        _RANDOM if index is None else index
        for mutant in recording.mutants
        for index in mutant.answers
    ]
    answers = torch.tensor(indices, dtype=torch.long)
    all_columns = {
        # Ordered by call: most mutants answer most calls as the reference does.
        "answers": narrow(answers.view(len(recording.mutants), len(recording.calls)).T),
        **tensor_columns,
        **reply_columns,
        **pairs_to_columns(recording.pairs),
        **sweep_columns,
        **weight_columns,
    }
    return _file_of(body, all_columns)


def with_words(data: bytes, words: Mapping[str, MisconceptionText]) -> bytes:
    """Return the bytes of a fault dictionary with other words and nothing else changed.

    `save` of what `load` returns is not enough: some numbers would be rounded a second time. Raises
    the exceptions in UNREADABLE.
    """
    body, columns = _body_and_columns(data)
    body["words"] = _stored_words(words)
    return _file_of(body, columns)


def _stored_words(words: Mapping[str, MisconceptionText]) -> dict[str, object]:
    return {id_: text.model_dump() for id_, text in words.items()}


def _file_of(body: Mapping[str, object], columns: Mapping[str, Tensor]) -> bytes:
    """Return the bytes of a file with this body and these columns."""
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    return bytes(
        safetensors.torch.save(
            {n: column.contiguous() for n, column in columns.items()}, metadata={"body": text}
        )
    )


def _body_and_columns(data: bytes) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the body and the columns of a file."""
    columns = safetensors.torch.load(data)
    length = int.from_bytes(data[:_LENGTH_BYTES], "little")
    header = json.loads(data[_LENGTH_BYTES : _LENGTH_BYTES + length])
    body: dict[str, Any] = json.loads(header["__metadata__"]["body"])
    return body, columns


def read(path: Path) -> FaultDictionary:
    """Read a fault dictionary. Raises CourseError if it is missing or cannot be read."""
    try:
        return load(path.read_bytes())  # `load` caches by content
    except FileNotFoundError as error:
        next_step = restore(path, "an instructor who has not released it yet")
        raise CourseError(f"{path} is not here. {next_step}") from error
    except OtherFields as error:
        raise CourseError(f"{path} {error}") from error
    except UNREADABLE as error:
        raise CourseError(
            f"{path} cannot be read ({type(error).__name__}). {restore(path)}"
        ) from error


class OtherFields(ValueError):
    """A file of this FORMAT has other reply fields than the engine.

    The author of the change has not increased FORMAT.
    """


# The exceptions of reading bytes that are no fault dictionary, or a damaged one.
UNREADABLE = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RuntimeError,
    SafetensorError,
)


@lru_cache(maxsize=16)
def load(data: bytes) -> FaultDictionary:
    """Return the fault dictionary that `save` made these bytes from; for equal bytes the same one.

    Raises the exceptions in UNREADABLE.
    """
    body, columns = _body_and_columns(data)
    if body["format"] != FORMAT:
        raise ValueError("another format")
    drawn = tuple(Drawn(*fields) for fields in body["drawn"])
    tensors = read_tensors(columns, drawn, body["tensors"])
    answers: list[list[int]] = columns["answers"].T.tolist()
    return FaultDictionary(
        exercise=body["exercise"],
        stub=body["stub"],
        checks=tuple(map(PublicCheck.model_validate, body["checks"])),
        calls=_read_calls(body["calls"], tensors),
        expected=tuple([_read_outputs(indices, tensors) for indices in body["expected"]]),
        replies=_Replies(body["replies"], columns),
        mutants=tuple(
            _read_mutant(id_, row) for id_, row in zip(body["mutants"], answers, strict=True)
        ),
        words={
            id_: MisconceptionText.model_validate(words) for id_, words in body["words"].items()
        },
        hidden=tuple(body["hidden"]),
        kills=tuple(body["kills"]),
        pairs=pairs_from_columns(columns),
        sweeps=sweeps_from_columns(body.get("curves", ()), columns),
        key=body["key"],
        drawn=drawn,
        conditions=tuple(_read_condition(condition, tensors) for condition in body["conditions"]),
        weights=_read_weights(body.get("weights", ()), columns),
    )


def current(exercise: Exercise) -> FaultDictionary | None:
    """Return an exercise's fault dictionary, or None if it is missing, damaged or out of date.

    It is out of date if it has another format, or was made from other files than the present ones.
    """
    try:
        recording = load(exercise.fingerprints.read_bytes())
    except UNREADABLE:
        return None
    return recording if recording.key == key_of(exercise) else None


def _read_calls(bodies: Iterable[Any], tensors: list[Tensor]) -> tuple[Call, ...]:
    """Return calls from their bodies. Raises ValueError if a body is no call."""
    calls = list[Call]()
    for body in bodies:
        call = wire.from_body(body, tensors)
        if not isinstance(call, Call):
            raise ValueError("not a recorded call")
        calls.append(call)
    return tuple(calls)


def _stored_condition(condition: RecordedCondition, columns: TensorColumns) -> dict[str, object]:
    """Return a condition as JSON, with indices of `columns` in place of its tensors."""
    return {
        "function": condition.function,
        "rule": condition.rule,
        "calls": [_call_as_json(call, columns) for call in condition.calls],
        "expected": [columns.add(tensor, rounded=True) for tensor in condition.expected],
        "message": condition.message,
        "rows": condition.left_out.rows,
        "columns": condition.left_out.columns,
        "least": condition.least,
    }


def _read_condition(stored: Mapping[str, Any], tensors: list[Tensor]) -> RecordedCondition:
    return RecordedCondition(
        function=stored["function"],
        rule=stored["rule"],
        calls=_read_calls(stored["calls"], tensors),
        expected=tuple(tensors[index] for index in stored["expected"]),
        message=stored["message"],
        left_out=LeftOut(tuple(stored["rows"]), tuple(stored["columns"])),
        least=stored["least"],
    )


def _stored_weights(
    weights: Mapping[int, StepWeights],
) -> tuple[list[tuple[int, int]], dict[str, Tensor]]:
    """Return each call with its number of steps, and columns with the weights in half precision."""
    columns = {
        _weights_column(call, step): table.half()
        for call, tables in weights.items()
        for step, table in enumerate(tables)
        if table is not None
    }
    return [(call, len(tables)) for call, tables in weights.items()], columns


def _read_weights(
    calls: Iterable[tuple[int, int]], columns: Mapping[str, Tensor]
) -> dict[int, StepWeights]:
    weights = dict[int, StepWeights]()
    for call, steps in calls:
        tables = [columns.get(_weights_column(call, step)) for step in range(steps)]
        weights[call] = tuple([None if table is None else table.float() for table in tables])
    return weights


def _weights_column(call: int, step: int) -> str:
    return f"weights.{call}.{step}"


def _stored_outputs(outputs: Expected, columns: TensorColumns) -> list[int | None]:
    """Add the reference's outputs to the columns, and return their indices."""
    return [None if t is None else columns.add(t, rounded=True) for t in outputs]


def _read_outputs(indices: Sequence[int | None], tensors: Sequence[Tensor]) -> Expected:
    return tuple([None if index is None else tensors[index] for index in indices])


def _read_mutant(id_: str, indices: Sequence[int]) -> RecordedMutant:
    """Return a mutant whose replies have these indices, where _RANDOM stands for none."""
    return RecordedMutant(id_, tuple([None if i == _RANDOM else i for i in indices]))


def _call_as_json(call: Call, columns: TensorColumns) -> object:
    """Return a call as JSON, with indices of `columns` in place of its tensors."""
    tensors: list[Tensor] = []
    body = wire.to_body(call, tensors)
    indices = [columns.add(tensor) for tensor in tensors]
    return _renumber_tensors(body, indices)


def _renumber_tensors(body: Any, indices: Sequence[int]) -> Any:
    """Return a JSON value in which each tensor's index is replaced by an entry of `indices`."""
    if isinstance(body, list):
        return [_renumber_tensors(entry, indices) for entry in body]
    if not isinstance(body, dict):
        return body
    if body.get("$") == "tensor":
        return {"$": "tensor", "index": indices[body["index"]]}
    return {name: _renumber_tensors(entry, indices) for name, entry in body.items()}


# A structure is a reply without the numbers of its tensors. It is stored once, as a row of indices:
# for each field, the index of its value among all values of this field. `Response.structure` is
# something else: the compared fields of a reply.

# Different values, each with its index. A key is the JSON of its value.
_Distinct = dict[str, tuple[int, object]]


def _index_of(value: object, entries: _Distinct) -> int:
    """Return the index of a value, which is added if it is new."""
    index, _ = entries.setdefault(json.dumps(value, sort_keys=True), (len(entries), value))
    return index


# The keys of a file, which has all fields of a reply.
_STORED_FIELDS = ("raised", "undefined", "outputs", "gradients", *PLAIN)
# The attribute of a key that has another name. The key stays, so that files remain readable.
_ATTRIBUTES = {"undefined": "has_nan"}


def _replies_body(
    replies: Sequence[Sequence[ReplyFingerprint]],
) -> tuple[dict[str, object], dict[str, Tensor]]:
    """Return the replies as an entry of the file's body, and as its columns.

    Args:
        replies: for each call the different replies.
    """
    values: dict[str, _Distinct] = {name: {} for name in _STORED_FIELDS}
    rows: _Distinct = {}
    structures = list[int]()  # for each reply the index of its row
    projections, norms = list[tuple[float, ...]](), list[float]()  # of tensors with numbers
    for reply in chain.from_iterable(replies):
        fields = {name: getattr(reply, _ATTRIBUTES.get(name, name)) for name in _STORED_FIELDS}
        fields["outputs"] = [_without_numbers(output) for output in reply.outputs]
        gradients = {name: reply.gradients[name] for name in sorted(reply.gradients)}
        fields["gradients"] = {
            name: gradient and _without_numbers(gradient) for name, gradient in gradients.items()
        }
        row = [_index_of(fields[name], values[name]) for name in _STORED_FIELDS]
        structures.append(_index_of(row, rows))
        for fingerprint in (*reply.outputs, *gradients.values()):
            if fingerprint is not None and len(fingerprint.projections) == PROJECTIONS:
                projections.append(fingerprint.projections)
                norms.append(fingerprint.norm)
    integers, sizes = to_rows(torch.tensor(projections, dtype=torch.float64).view(-1, PROJECTIONS))
    row_table = torch.tensor(_values(rows), dtype=torch.long).view(-1, len(_STORED_FIELDS))
    body: dict[str, object] = {
        "counts": [len(call_replies) for call_replies in replies],
        "values": {name: _values(values[name]) for name in _STORED_FIELDS},
    }
    columns = {
        "replies.structures": narrow(row_table),
        "replies.structure": narrow(torch.tensor(structures, dtype=torch.long)),
        "replies.projections": integers.T,  # one direction after the other
        "replies.sizes": sizes,
        "replies.norms": to_sizes(torch.tensor(norms, dtype=torch.float64)),
    }
    return body, columns


def _values(entries: _Distinct) -> list[object]:
    """Return the values in the order of their indices."""
    return [value for _, value in entries.values()]


def _without_numbers(tensor: TensorFingerprint) -> list[object]:
    """Return a tensor's part of a structure, which `_tensor` reads: fields and count of numbers."""
    return [tensor.kind, tensor.shape, tensor.extremes, len(tensor.projections)]


class _Replies(Sequence[Sequence[ReplyFingerprint]]):
    """The replies to each call, which are read from the columns when they are first needed."""

    def __init__(self, body: dict[str, Any], columns: dict[str, Tensor]) -> None:
        """Read the tables.

        Raises OtherFields if the file has other fields than the engine, and ValueError if the
        columns contradict each other.
        """
        if differ := sorted({*body["values"]} ^ {*_STORED_FIELDS}):
            problem = (
                f"is of format {FORMAT}, as this engine is, and differs from it in "
                f"{', '.join(differ)}"
            )
            raise OtherFields(
                f"{problem}. Next: increase FORMAT in {Path(__file__).name}, then course release"
            )
        values = [list(map(frozen, body["values"][name])) for name in _STORED_FIELDS]
        self._structures = list[dict[str, Any]]()
        tensor_counts = []  # for each structure, the tensors whose numbers are stored
        for row in columns["replies.structures"].tolist():
            structure: dict[str, Any] = dict(
                zip(_STORED_FIELDS, map(getitem, values, row), strict=True)
            )
            tensors = (*structure["outputs"], *structure["gradients"].values())
            counts = [tensor[-1] for tensor in tensors if tensor]  # numbers of each tensor
            self._structures.append(structure)
            tensor_counts.append(counts.count(PROJECTIONS))
        self._structure: list[int] = columns["replies.structure"].tolist()
        self._numbers = from_rows(columns["replies.projections"].T, columns["replies.sizes"])
        self._norms = from_sizes(columns["replies.norms"])
        # A reply has the index of its first numbers, and a call the index of its first reply.
        self._first_numbers = [0, *accumulate(tensor_counts[index] for index in self._structure)]
        self._first_replies = [0, *accumulate(body["counts"])]
        counts_agree = self._first_replies[-1] == len(self._structure)
        if not counts_agree or self._first_numbers[-1] != len(self._numbers):
            raise ValueError("the columns of replies have other lengths")
        self._cache: dict[int, tuple[ReplyFingerprint, ...]] = {}

    def __len__(self) -> int:
        return len(self._first_replies) - 1

    def __getitem__(self, call: Any) -> Any:
        if call not in self._cache:
            start, end = self._first_replies[call], self._first_replies[call + 1]
            span = slice(self._first_numbers[start], self._first_numbers[end])
            numbers, norms = self._numbers[span].tolist(), self._norms[span].tolist()
            tensor_numbers = iter(zip(map(tuple, numbers), norms, strict=True))
            self._cache[call] = tuple(
                _reply(self._structures[i], tensor_numbers) for i in self._structure[start:end]
            )
        return self._cache[call]


_Numbers = Iterator[tuple[tuple[float, ...], float]]  # the projections and the norm of each tensor


def _reply(structure: dict[str, Any], tensor_numbers: _Numbers) -> ReplyFingerprint:
    """Return the reply with a structure. Its tensors take the next of the numbers."""
    outputs = tuple(_tensor(output, tensor_numbers) for output in structure["outputs"])
    gradients = {
        name: gradient and _tensor(gradient, tensor_numbers)
        for name, gradient in structure["gradients"].items()
    }
    fields: dict[str, Any] = structure | {"outputs": outputs, "gradients": gradients}
    return ReplyFingerprint(**{_ATTRIBUTES.get(name, name): fields[name] for name in fields})


def _tensor(structure: Any, tensor_numbers: _Numbers) -> TensorFingerprint:
    """Return a tensor with the next numbers. If it has not PROJECTIONS, its numbers are 0."""
    kind, shape, extremes, count = structure
    projections, norm = next(tensor_numbers) if count == PROJECTIONS else ((0.0,) * count, 0.0)
    return TensorFingerprint(kind, shape, extremes, projections, norm)
