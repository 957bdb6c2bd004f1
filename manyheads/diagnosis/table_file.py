"""Tables on disk: `course release` writes them, the judge reads them, or builds the table anew if the file is stale."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor

from ..box.worker import wire
from ..box.worker.messages import Call
from ..checks.explain import KINDS
from ..checks.implementation import Runner
from ..checks.recording import Exchange
from ..course import Exercise
from ..submission.digest import code_digest
from .agree import comparable
from .bank import Bank
from .pair_answers import from_tensors, to_tensors
from .sketch import Sketches
from .table import Table, build_table, probe_at

FORMAT = "11"  # increase it when the format of a table or its computation changes
PUBLIC = b"public inputs: drawn without the course's secret"  # in place of the secret


def table_key(exercise: Exercise, transcript: Sequence[Exchange]) -> str:
    """A hash of everything that the table depends on: the reference, the mutants, the calls, the kinds of exceptions."""
    sources = [path for path in (*exercise.mutant_sources(), exercise.solution) if path.exists()]
    parts = [FORMAT.encode(), *(code_digest(path.read_text(encoding="utf-8")).encode() for path in sources)]
    parts += [f"{kind.type} {kind.pattern.pattern} {kind.meaning}".encode() for kind in KINDS]
    parts += [e.check.encode() + structure_of(e.call) for e in transcript if comparable(e)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def structure_of(call: Call) -> bytes:
    """The content of a call without its floats, whose last bits depend on the processor."""
    tensors: list[Tensor] = []
    body = json.dumps(wire.to_body(call, tensors))
    seen = [f"{t.dtype} {tuple(t.shape)} {'' if t.is_floating_point() else t.tolist()}" for t in tensors]
    return "; ".join([body, *seen]).encode()


def load_table(path: Path, key: str, bank: Bank, reference: Runner, transcript: Sequence[Exchange]) -> Table:
    """Load the table, or build it if the file is missing or stale. `transcript`: of the reference, with PUBLIC."""
    exchanges = [e for e in transcript if comparable(e)]
    try:
        return _read(path.read_bytes(), key, exchanges)
    except (OSError, ValueError, KeyError, IndexError, safetensors.SafetensorError):
        return build_table(bank, reference, exchanges)


def new_table(bank: Bank, reference: Runner, transcript: Sequence[Exchange]) -> Table:
    """Build the table, whatever lies on disk. `transcript`: of the reference, with PUBLIC."""
    return build_table(bank, reference, [e for e in transcript if comparable(e)])


def is_current(path: Path, key: str) -> bool:
    """Whether the file exists and has this key."""
    try:
        return _about(path.read_bytes())["key"] == key
    except (OSError, ValueError, KeyError):
        return False


def save_table(table: Table, key: str) -> bytes:
    """The file's bytes."""
    tensors = {"probes": torch.tensor([p.index for p in table.probes]), "silent": table.silent}
    tensors["class_sizes"] = torch.tensor([len(members) for members in table.classes])
    tensors["class_members"] = torch.tensor([m for members in table.classes for m in members])
    for k, answers in enumerate(table.answers):
        tensors |= _named(f"answers{k}", answers)
    tensors |= to_tensors(table.pairs)
    metadata = {"about": json.dumps({"key": key})}
    return bytes(safetensors.torch.save({n: t.contiguous() for n, t in tensors.items()}, metadata=metadata))


def _read(data: bytes, key: str, exchanges: Sequence[Exchange]) -> Table:
    if _about(data)["key"] != key:
        raise ValueError("the table is stale")
    t = safetensors.torch.load(data)
    members = iter(t["class_members"].tolist())
    classes = tuple(tuple(next(members) for _ in range(size)) for size in t["class_sizes"].tolist())
    probes = tuple(probe_at(exchanges, i) for i in t["probes"].tolist())
    answers = tuple(_sketches(t, f"answers{k}") for k in range(len(probes)))
    return Table(probes, classes, answers, t["silent"], from_tensors(t))


def _about(data: bytes) -> dict[str, str]:
    length = int.from_bytes(data[:8], "little")
    about: dict[str, str] = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["about"])
    return about


def _named(name: str, answers: Sketches) -> dict[str, Tensor]:
    return {
        f"{name}.structure": answers.structure,
        f"{name}.numbers": answers.numbers,
        f"{name}.scales": answers.scales,
    }


def _sketches(tensors: dict[str, Tensor], name: str) -> Sketches:
    return Sketches(tensors[f"{name}.structure"], tensors[f"{name}.numbers"], tensors[f"{name}.scales"])
