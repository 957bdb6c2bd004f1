"""A call that is put to trusted code: to the reference, to every mutant, to every number of a family.

Whatever depends on the call alone is made once.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, cached_property

import torch
from torch import Tensor

from ..box.worker.answers import Reply
from ..box.worker.execute import execute
from ..box.worker.messages import Build, Call
from ..checks.cast import cast, map_call
from ..diagnosis.family import Namespace
from ..diagnosis.fingerprint import Facet, ReplyFingerprint, fingerprint_beside, has_no_numbers
from ..diagnosis.observe import is_of_copies, settled

FEW = 2  # copies
VALUES: tuple[Facet, ...] = ("outputs", "gradients")
# Relative changes of the inputs, larger than a rounding error, in float64 and in float32, each with a seed: up or down, a number
# near the middle between two roundings is moved to the other side.
NUDGES = ((1e-9, 0),)
NARROW_NUDGES = ((2e-6, 0), (-2e-6, 0), (2e-6, 1), (-2e-6, 1))


class RecordedCall:
    """A call, and what it takes to ask it."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self._nudged, self._of = cache(self._nudge), cache(self._cut)

    def whole(self, namespace: Namespace, only_values: bool = False) -> Reply:
        """Return the reply, about all copies.

        Code that raises for two copies is not asked for hundreds: it raises there, too, and a mask sized by the batch takes 2 GiB.
        """
        if self._is_of_copies and self.call.cotangent is None:
            few = self._of(FEW).whole(namespace, only_values)
            if few.raised is not None:
                return few
        return execute(namespace, self._cast, "", only_values=only_values)

    def answer(self, namespace: Namespace, only_values: bool = False) -> Reply:
        """Return what is recorded of the reply: of many copies, the extremes."""
        return settled(self.call, self.whole(namespace, only_values))

    @cached_property
    def in_single(self) -> RecordedCall:
        """The same call in float32."""
        return RecordedCall(replace(self.call, dtype="float32"))

    @property
    def is_drawn(self) -> bool:
        """Whether chance may decide a reply."""
        return self.call.random or (isinstance(self.call.subject, Build) and self.call.subject.training)

    def is_fixed(self, namespace: Namespace, found: ReplyFingerprint, right: ReplyFingerprint) -> bool:
        """Return whether neither chance nor rounding decides this reply, as in a division by a sum that cancels.

        Another processor computes other numbers there. right: the reference's reply.
        """
        if found.raised and not self.is_drawn:
            return True
        if found.raised == "other":  # it agrees with nothing
            return False
        # Where sizes depend on how many copies there are, they are others.
        asked = self._of(FEW + 1) if found.raised and self._is_of_copies else self
        has_report = isinstance(self.call.subject, Build) and bool(self.call.subject.report)
        only_values = not has_report and not has_no_numbers(right)
        facets = VALUES if only_values else None
        is_wide = self.call.dtype in (None, "float64") and self.call.autocast is None and {*found.dtype} <= {"float64"}
        nudges = NUDGES if is_wide else NARROW_NUDGES
        replies = (asked._nudged(seed, by, only_values).answer(namespace, only_values) for by, seed in nudges)
        return all(found.is_same(fingerprint_beside(right, self.call, reply), facets) for reply in replies)

    def _nudge(self, seed: int, by: float, only_values: bool) -> RecordedCall:
        generator = torch.Generator().manual_seed(seed)

        def change(tensor: Tensor) -> Tensor:
            if not tensor.is_floating_point() or tensor.device.type == "meta":
                return tensor
            return tensor * (1 + by * torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype))

        another, watch = self.call.seed + self.is_drawn, self.call.watch and not only_values
        return RecordedCall(map_call(replace(self.call, seed=another, watch=watch), change))

    @cached_property
    def _cast(self) -> Call:
        return cast(self.call, self.call.dtype or "float64")

    @cached_property
    def _is_of_copies(self) -> bool:
        return is_of_copies(self.call)

    def _cut(self, few: int) -> RecordedCall:
        """Return the same call about a few of the copies."""
        many = next(len(value) for value in self.call.args if isinstance(value, Tensor))

        def change(value: object) -> object:
            is_of_all = isinstance(value, Tensor) and value.dim() > 0 and len(value) == many
            return value[:few] if is_of_all else value  # type: ignore[index]

        return RecordedCall(self.call.map(change))
