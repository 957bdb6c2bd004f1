"""Mutants that are wrong in the same calls as an attempt, and in the same way there, whatever the
numbers are.

One mistake can be written in ways that give other numbers: a measure without its absolute value, a
refusal of another type, a parameter of one's own. Where it shows itself, and as what, can tell it
all the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import combinations_with_replacement

from torch import Tensor

from ..box.worker.messages import Build, Call, StandIn
from .fingerprint import Facet, ReplyFingerprint
from .observe import Observed, is_of_copies
from .proofs import learns_more
from .recording import RecordedMutant, Recording, facets_of

WRONG_AXIS = "size_wrong_axis"

_UNFIT = re.compile(r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)")


def has_foreign_size(seen: Iterable[Observed]) -> bool:
    """Return whether one of these calls raised because of a size that is none of the call's, and no
    product of two of them.
    """
    for each in seen:
        if each.reply.raised is not None and (told := _UNFIT.search(each.reply.raised.message)):
            known = {a * b for a, b in combinations_with_replacement({1, *sizes_of(each.call)}, 2)}
            if any(int(size) not in known for size in told.groups()):
                return True
    return False


def sizes_of(call: Call) -> Iterator[int]:
    """Yield every size of a tensor of the call, and every whole number that it passes."""
    for given in call.given:
        parts: list[object] = [given]
        if isinstance(given, StandIn):
            parts = [*given.linears.values(), *given.attributes.values()]
        elif isinstance(given, Build):
            parts = [*given.args, *given.kwargs.values()]
        for part in parts:
            if isinstance(part, Tensor):
                yield from part.shape
            elif isinstance(part, int):
                yield part


MOST = 1 / 3  # of all calls: many mistakes change the numbers of most calls
FEW = 1 / 8  # of the mutants of a misconception: it is about something else
GRADIENTS: tuple[Facet, ...] = ("gradients", "argument_gradients")

Way = tuple[str, ...]  # how a reply differs from the reference's
NOT_REFUSED: Way = ("not refused",)


def proven_by_place(
    recording: Recording, seen: Mapping[int, Observed], shown: Set[int]
) -> dict[int, str]:
    """By the number of each call that is wrong.

    The misconception of all mutants that are wrong in the same calls, and in the same way. Nothing
    where there are several such misconceptions, or none, nor where much is wrong.

    shown: the calls that visible checks ask and that say something of the attempt.
    """
    asked = [i for i in sorted(shown) if not is_of_copies(recording.calls[i])]
    if any(i not in seen for i in asked):
        return {}
    rights = {i: recording.right(i) for i in asked}
    facets = {i: facets_of(recording, i) for i in asked}
    sizes = {i: {1, *sizes_of(recording.calls[i])} for i in asked}
    found = {i: way for i in asked if (way := _way(rights[i], seen[i].found, facets[i], sizes[i]))}
    learns = bool(found) and all(map(_of_parameters, found.values()))
    moved = learns and any(way != _of_parameters(way) for way in found.values())
    if moved and not learns_more((each.reply, each.right.gradients) for each in seen.values()):
        return {}
    if len(found) > MOST * len(rights) and not learns:
        return {}
    # a number of another type may be another number, too
    if any("kind" in way for way in found.values()):
        return {}

    squares = _squares(rights, {i: seen[i].found for i in found})

    def is_alike(mutant: RecordedMutant) -> bool:
        answers = dict[int, ReplyFingerprint]()
        for i in asked:
            answer = recording.answer(mutant, i)
            if answer is None:
                return False
            answers[i] = answer
            way, mine = _way(rights[i], answer, facets[i], sizes[i]), found.get(i, ())
            if way != mine if not learns else _of_parameters(way) != _of_parameters(mine):
                return False
        return _squares(rights, {i: answers[i] for i in found}) == squares

    names = {mutant.id for mutant in recording.mutants if is_alike(mutant)} if found else set()
    # Who refuses by an exception of another type does less than is asked; who stops there accepts
    # nothing.
    refused = [
        i for i, way in found.items() if way == NOT_REFUSED and seen[i].reply.raised is not None
    ]
    stops = {
        m.id
        for m in recording.mutants
        for i in refused
        if (reply := recording.answer(m, i)) and reply.raised
    }

    def is_about(name: str) -> bool:  # more than a few mutants of it are wrong in these calls
        rows = [
            speaks
            for each, speaks in zip(recording.mutants, recording.speaks, strict=True)
            if each.id == name
        ]
        return name in stops and sum(
            all(row >> i & 1 for i in refused) for row in rows
        ) > FEW * len(rows)

    names = {name for name in names if not refused or is_about(name)}
    return dict.fromkeys(found, names.pop()) if len(names) == 1 else {}


def _of_parameters(way: Way) -> Way:
    """Return what of it says that other parameters than are due stand there: then all numbers may
    be others.
    """
    return tuple(part for part in way if part.startswith("parameters"))


def _way(
    right: ReplyFingerprint,
    fingerprint: ReplyFingerprint,
    facets: tuple[Facet, ...],
    sizes: Set[int],
) -> Way:
    """Return how a reply differs from the reference's: nothing where it agrees.

    sizes: those in the call.
    """
    if right.raised == "refused":
        return () if fingerprint.raised == "refused" else NOT_REFUSED
    if right.raised or fingerprint.raised:
        return () if right.raised == fingerprint.raised else (f"raised {fingerprint.raised}",)
    ways = (
        []
        if fingerprint.agrees(right, ("outputs",))
        else [_way_of_outputs(right, fingerprint, sizes)]
    )
    if "parameters" in facets and right.parameters != fingerprint.parameters:
        ways.append(f"parameters {_way_of_parameters(right, fingerprint)}")
    for facet in facets:
        if facet in ("outputs", "parameters") or fingerprint.agrees(right, (facet,)):
            continue
        if facet not in GRADIENTS:
            ways.append(facet)
        elif not ways:  # wrong numbers have wrong gradients, and other parameters other ones
            due = (name for name, each in right.gradients.items() if each is not None and each.norm)
            is_cut = any(
                (mine := fingerprint.gradients.get(name)) is None or not mine.norm for name in due
            )
            ways.append(f"{facet}{' cut' if is_cut else ''}")
    return tuple(ways)


def _way_of_outputs(right: ReplyFingerprint, fingerprint: ReplyFingerprint, sizes: Set[int]) -> str:
    if [output.kind for output in fingerprint.outputs] != [output.kind for output in right.outputs]:
        return "kind"
    shapes = [[output.shape or () for output in reply.outputs] for reply in (right, fingerprint)]
    # a size that is written in leaves the axes that are there, and is any number
    if shapes[0] != shapes[1]:
        if [*map(len, shapes[0])] != [*map(len, shapes[1])]:
            return "axes"
        return (
            f"shape {shapes[1]}"
            if {size for shape in shapes[1] for size in shape} <= sizes
            else "shape"
        )
    return (
        "numbers"
        if all(math.isfinite(output.norm) for output in fingerprint.outputs)
        else "not finite"
    )


def _way_of_parameters(right: ReplyFingerprint, fingerprint: ReplyFingerprint) -> str:
    extra = fingerprint.parameters.keys() - right.parameters.keys()
    missing = "missing, " if right.parameters.keys() - fingerprint.parameters.keys() else ""
    if extra and all(
        name.endswith(".bias") and f"{name[:-4]}weight" in right.parameters for name in extra
    ):
        return f"{missing}a bias"
    return f"{missing}{'more' if extra else ''}"


def _squares(
    rights: Mapping[int, ReplyFingerprint], replies: Mapping[int, ReplyFingerprint]
) -> Mapping[int, int]:
    """By call the size of the one parameter too many, if it is as long as wide in every call, as a
    mask is.
    """
    extra = [
        (i, name, shape)
        for i, each in replies.items()
        for name, shape in each.parameters.items()
        if name not in rights[i].parameters
    ]
    square = all(len(shape) > 1 and shape[-1] == shape[-2] for _, _, shape in extra)
    return (
        {i: shape[-1] for i, _, shape in extra}
        if square and len({name for _, name, _ in extra}) == 1
        else {}
    )
