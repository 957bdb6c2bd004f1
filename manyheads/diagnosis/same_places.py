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
from .fingerprint import ReplyField, ReplyFingerprint
from .observe import ObservedReply, is_of_copies
from .proofs import learns_more
from .recording import FaultDictionary, RecordedMutant, facets_of

WRONG_AXIS = "size_wrong_axis"

_UNFIT = re.compile(r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)")


def has_foreign_size(observations: Iterable[ObservedReply]) -> bool:
    """Return whether one of these calls raised because of a size that is none of the call's, and no
    product of two of them.
    """
    for observation in observations:
        if observation.reply.raised is not None and (
            mismatch := _UNFIT.search(observation.reply.raised.message)
        ):
            products = {
                a * b for a, b in combinations_with_replacement({1, *sizes_of(observation.call)}, 2)
            }
            if any(int(size) not in products for size in mismatch.groups()):
                return True
    return False


def sizes_of(call: Call) -> Iterator[int]:
    """Yield every size of a tensor of the call, and every whole number that it passes."""
    for argument in call.inputs:
        values: list[object] = [argument]
        if isinstance(argument, StandIn):
            values = [*argument.linears.values(), *argument.attributes.values()]
        elif isinstance(argument, Build):
            values = [*argument.args, *argument.kwargs.values()]
        for value in values:
            if isinstance(value, Tensor):
                yield from value.shape
            elif isinstance(value, int):
                yield value


MOST_CALLS_SHARE = 1 / 3  # of all calls: many mistakes change the numbers of most calls
FEW = 1 / 8  # of the mutants of a misconception: it is about something else
GRADIENTS: tuple[ReplyField, ...] = ("gradients", "argument_gradients")

Way = tuple[str, ...]  # how a reply differs from the reference's
NOT_REFUSED: Way = ("not refused",)


def pass_fail_match(
    recording: FaultDictionary, observations: Mapping[int, ObservedReply], visible_calls: Set[int]
) -> dict[int, str]:
    """By the number of each call that is wrong.

    The misconception of all mutants that are wrong in the same calls, and in the same way. Nothing
    where there are several such misconceptions, or none, nor where much is wrong.

    visible_calls: the calls that visible checks ask and that say something of the attempt.
    """
    calls = [i for i in sorted(visible_calls) if not is_of_copies(recording.calls[i])]
    if any(i not in observations for i in calls):
        return {}
    rights = {i: recording.expected_reply(i) for i in calls}
    facets = {i: facets_of(recording, i) for i in calls}
    sizes = {i: {1, *sizes_of(recording.calls[i])} for i in calls}
    differences = {
        i: difference
        for i in calls
        if (difference := _difference(rights[i], observations[i].actual, facets[i], sizes[i]))
    }
    learns = bool(differences) and all(map(_of_parameters, differences.values()))
    moved = learns and any(
        difference != _of_parameters(difference) for difference in differences.values()
    )
    if moved and not learns_more(
        (observation.reply, observation.expected.gradients) for observation in observations.values()
    ):
        return {}
    if len(differences) > MOST_CALLS_SHARE * len(rights) and not learns:
        return {}
    # a number of another type may be another number, too
    if any("kind" in difference for difference in differences.values()):
        return {}

    squares = _squares(rights, {i: observations[i].actual for i in differences})

    def is_alike(mutant: RecordedMutant) -> bool:
        answers = dict[int, ReplyFingerprint]()
        for i in calls:
            answer = recording.answer(mutant, i)
            if answer is None:
                return False
            answers[i] = answer
            difference, actual_difference = (
                _difference(rights[i], answer, facets[i], sizes[i]),
                differences.get(i, ()),
            )
            if (
                difference != actual_difference
                if not learns
                else _of_parameters(difference) != _of_parameters(actual_difference)
            ):
                return False
        return _squares(rights, {i: answers[i] for i in differences}) == squares

    names = (
        {mutant.id for mutant in recording.mutants if is_alike(mutant)} if differences else set()
    )
    # Who refuses by an exception of another type does less than is asked; who stops there accepts
    # nothing.
    refused = [
        i
        for i, difference in differences.items()
        if difference == NOT_REFUSED and observations[i].reply.raised is not None
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
            for mutant, speaks in zip(recording.mutants, recording.detected_in, strict=True)
            if mutant.id == name
        ]
        return name in stops and sum(
            all(row >> i & 1 for i in refused) for row in rows
        ) > FEW * len(rows)

    names = {name for name in names if not refused or is_about(name)}
    return dict.fromkeys(differences, names.pop()) if len(names) == 1 else {}


def _of_parameters(difference: Way) -> Way:
    """Return what of it says that other parameters than are due stand there: then all numbers may
    be others.
    """
    return tuple(phrase for phrase in difference if phrase.startswith("parameters"))


def _difference(
    expected: ReplyFingerprint,
    fingerprint: ReplyFingerprint,
    facets: tuple[ReplyField, ...],
    sizes: Set[int],
) -> Way:
    """Return how a reply differs from the reference's: nothing where it agrees.

    sizes: those in the call.
    """
    if expected.raised == "refused":
        return () if fingerprint.raised == "refused" else NOT_REFUSED
    if expected.raised or fingerprint.raised:
        return () if expected.raised == fingerprint.raised else (f"raised {fingerprint.raised}",)
    differences = (
        []
        if fingerprint.agrees(expected, ("outputs",))
        else [_way_of_outputs(expected, fingerprint, sizes)]
    )
    if "parameters" in facets and expected.parameters != fingerprint.parameters:
        differences.append(f"parameters {_way_of_parameters(expected, fingerprint)}")
    for facet in facets:
        if facet in ("outputs", "parameters") or fingerprint.agrees(expected, (facet,)):
            continue
        if facet not in GRADIENTS:
            differences.append(facet)
        elif not differences:  # wrong numbers have wrong gradients, and other parameters other ones
            gradient_names = (
                name
                for name, gradient in expected.gradients.items()
                if gradient is not None and gradient.norm
            )
            is_cut = any(
                (actual_gradient := fingerprint.gradients.get(name)) is None
                or not actual_gradient.norm
                for name in gradient_names
            )
            differences.append(f"{facet}{' cut' if is_cut else ''}")
    return tuple(differences)


def _way_of_outputs(
    expected: ReplyFingerprint, fingerprint: ReplyFingerprint, sizes: Set[int]
) -> str:
    if [output.kind for output in fingerprint.outputs] != [
        output.kind for output in expected.outputs
    ]:
        return "kind"
    shapes = [[output.shape or () for output in reply.outputs] for reply in (expected, fingerprint)]
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


def _way_of_parameters(expected: ReplyFingerprint, fingerprint: ReplyFingerprint) -> str:
    extra = fingerprint.parameters.keys() - expected.parameters.keys()
    missing = "missing, " if expected.parameters.keys() - fingerprint.parameters.keys() else ""
    if extra and all(
        name.endswith(".bias") and f"{name[:-4]}weight" in expected.parameters for name in extra
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
        for i, reply in replies.items()
        for name, shape in reply.parameters.items()
        if name not in rights[i].parameters
    ]
    square = all(len(shape) > 1 and shape[-1] == shape[-2] for _, _, shape in extra)
    return (
        {i: shape[-1] for i, _, shape in extra}
        if square and len({name for _, name, _ in extra}) == 1
        else {}
    )
