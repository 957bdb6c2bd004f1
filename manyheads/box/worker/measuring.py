"""Measure the last step of a call. Only for display (`course bench`): student code in this process can forge any number."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from .answers import Output, Raised, Reply
from .device import Peak, on_its_device
from .execute import raised_by
from .messages import Build, Measure
from .modules import build_module, lookup
from .op_monitor import Watching, is_dense
from .steps import handed_on, run_steps
from .structure import fits
from .tensor_info import tensors_in

# Count the bytes of the tensors that are alive at once while code runs. The same code has the same count every time.


class LiveTensors(Watching):
    """`with LiveTensors(given) as live: …` and then `live.peak`.

    What operations make counts from when it is made until nothing refers to its memory any more; views have none of their
    own. Left out: `given`, which was there before, what an operation needs only while it runs, and memory that is not torch's.
    """

    def __init__(self, given: Iterable[Tensor] = ()) -> None:
        super().__init__()
        self._given = [tensor.untyped_storage() for tensor in given]  # kept, so that no new memory has the same address
        self._known = {storage._cdata for storage in self._given}
        self._alive: dict[int, tuple[StorageWeakRef, int]] = {}
        self.peak = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self._alive = {key: entry for key, entry in self._alive.items() if not entry[0].expired()}
        for tensor in filter(is_dense, tensors_in(out)):
            storage = tensor.untyped_storage()
            if storage._cdata not in self._known and storage._cdata not in self._alive:
                self._alive[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        self.peak = max(self.peak, sum(size for _, size in self._alive.values()))
        return out


def measure(namespace: Mapping[str, object], message: Measure, source: str) -> Reply:
    """Take the steps, the last one again and again. Exceptions of the attempt are in the reply."""
    stage = "build"
    try:
        call = on_its_device(message.call)
        torch.default_generator.manual_seed(call.seed)
        subject = _subject(namespace, call.subject)
        stage = "call"
        *before, last = call.steps
        with torch.no_grad():
            results = run_steps(subject, before, call.form).results if before else ()
            if results and not fits(results[-1], call.form):
                return Reply(raised=Raised("TypeError", ("TypeError",), "returned another structure", stage, None))
            given = [handed_on(value, results, call.form) for value in last.args]
            run = partial(subject, *given)
            found = _peak(run, results, given) if message.memory else _times(run, message)
        return Reply(outputs=(Output("tensor", found, "float64", "cpu", tuple(found.shape)),))
    except BaseException as error:  # a student's SystemExit is an answer too
        return Reply(raised=raised_by(error, stage, source))


def _subject(namespace: Mapping[str, object], wanted: str | Build) -> Callable[..., object]:
    return lookup(namespace, wanted) if isinstance(wanted, str) else build_module(namespace, wanted).module


def _times(run: Callable[[], object], message: Measure) -> Tensor:
    """Return (runs,): ms."""
    _timed(run)  # warms up
    times: list[float] = []
    while len(times) < message.fewest or (len(times) < message.most and sum(times) < message.enough):
        times.append(_timed(run))
    return torch.tensor(times, dtype=torch.float64)


def _timed(run: Callable[[], object]) -> float:
    _wait()
    started = time.perf_counter()
    run()
    _wait()
    return (time.perf_counter() - started) * 1000


def _wait() -> None:
    """Until the GPU has done what it was asked, if one is in use."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _peak(run: Callable[[], object], *known: object) -> Tensor:
    """Return the most bytes at once: of the device's allocator, or of the tensors on the CPU."""
    with Peak() as peak, LiveTensors(tensors_in(list(known))) as live:
        run()
    return torch.tensor(float(live.peak if peak.bytes is None else peak.bytes), dtype=torch.float64)
