"""Count the bytes of the tensors that are alive at once while code runs. The same code has the same count every time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from .op_monitor import Watching, is_dense
from .tensor_info import tensors_in


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
