"""Find sizes that an attempt has fixed: by the shapes of its answers, and by calls with sizes that its text contains."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations, count, cycle, islice, product

from ..box.worker.answers import Output
from ..box.worker.messages import Build, Call
from ..checks.explain import is_refusal, kind_of
from ..checks.implementation import Runner
from ..checks.transcript import BatchRunner, Exchange, replies_of, target_of
from ..submission.unwritten import statements_of
from .agree import agree
from .resize import Axes, Layout, asks_again, layouts, sizes_of

# Find hard-coded shapes: call the attempt with sizes that its own text contains.
#
# An attempt that is right with those sizes and wrong with all others has them hard-coded. The text only suggests which
# calls to make; the answers are the proof.

HARD_CODED = "hard_coded_shape"
AXES = 3  # the largest number that is an axis in most texts
SMALLEST, LARGEST = 2, 128  # size 1 is too often right by chance: there is nothing to mask or to split
CALLS, AT_ONCE = 1000, 16  # the most calls, and how many are sent together
TOGETHER = 3  # the most axes with sizes from the text in one call
READ = 3  # how many calls of a function are analysed for each number of sizes; the one with most axes is used
NUMBERS, OF_ALL = 2**19, 2**26  # the most elements in the tensors of one call, and of all calls
MOST_NUMBERS = 2**23  # the most elements in the call that confirms a find
SIZES, CHOICES = 16, 20_000  # the most sizes taken from a text, and the most combinations of them


def works_for_its_own_sizes(
    subject: BatchRunner, reference: Runner, exchanges: Sequence[Exchange], source: str
) -> bool:
    """Return whether the attempt is right only if axes have sizes that its text contains. Raises AttemptEnded."""
    written = written_sizes(source)
    ways = templates(reference, exchanges) if written else []
    small = [way for way in ways if way.numbers(others(way, written)) <= NUMBERS]
    wrong = [way for way in small if not any(are_right(reference, ask(subject, [way.at(others(way, written))])))]
    calls = islice(_calls(wrong, written), CALLS)
    while some := list(islice(calls, AT_ONCE)):
        found = are_right(reference, ask(subject, [call for _, _, call in some]))
        for (layout, axes, _), is_right in zip(some, found, strict=True):
            if is_right and _is_fixed(subject, reference, layout, axes, written):
                return True
    return False


def written_sizes(source: str) -> list[int]:
    """Return the integers in a text that may be sizes: not negated ones, nor those below `if __name__ == "__main__"`."""
    nodes = [node for part in statements_of(source) for node in ast.walk(part)]
    negated = {id(node.operand) for node in nodes if isinstance(node, ast.UnaryOp)}
    numbers = [n.value for n in nodes if isinstance(n, ast.Constant) and type(n.value) is int and id(n) not in negated]
    return sorted({n for n in numbers if SMALLEST <= n <= LARGEST})[:SIZES]


def has_written_size(source: str) -> bool:
    """Return whether a text contains an integer that is a size and hardly an axis; True where the text is not at hand."""
    nodes = (node for part in statements_of(source) for node in ast.walk(part))
    return not source or any(isinstance(n, ast.Constant) and type(n.value) is int and n.value > AXES for n in nodes)


def templates(reference: Runner, exchanges: Sequence[Exchange]) -> list[Layout]:
    """Return calls that failed in a way that sizes may explain, a few of each function, those with most sizes first."""
    wrong = [e.call for e in exchanges if not asks_again(e.call) and _may_be_a_matter_of_size(e, reference)]
    unlike = {(target_of(call), sizes_of(call)): call for call in wrong}
    found: dict[tuple[str, int], list[Layout]] = {}
    for (name, sizes), call in sorted(unlike.items(), key=lambda item: -len(item[0][1])):
        alike = found.setdefault((name, len(sizes)), [])
        if len(alike) < READ:
            ways = (way for way in layouts(call) if reference.execute(way.at(others(way, []))).raised is None)
            alike.extend(islice(ways, 1))
    return [max(ways, key=lambda way: len(way.axes)) for ways in found.values() if ways]


def _may_be_a_matter_of_size(exchange: Exchange, reference: Runner) -> bool:
    raised, subject = exchange.reply.raised, exchange.call.subject
    if isinstance(subject, Build) and subject.state is None:
        return False  # the shapes of its weights at other sizes are not known
    if raised is not None:
        kind = kind_of(raised)
        return not is_refusal(raised) and (kind is None or kind.misconception is None)
    right = reference.execute(exchange.call)
    return [out.shape for out in exchange.reply.outputs] != [out.shape for out in right.outputs]


def _calls(found: Sequence[Layout], written: Sequence[int]) -> Iterator[tuple[Layout, Axes, Call]]:
    """Yield these calls with sizes from the text, fewest axes first, each with its layout and the chosen sizes."""
    choices = (
        (layout, axes) for n in range(1, TOGETHER + 1) for layout in found for axes in _choices(layout, written, n)
    )
    left = OF_ALL
    for layout, axes in islice(choices, CHOICES):
        sizes = others(layout, written) | axes
        numbers = layout.numbers(sizes)
        if numbers <= min(NUMBERS, left):
            left -= numbers
            yield layout, axes, layout.at(sizes)


def _choices(layout: Layout, written: Sequence[int], n: int) -> Iterator[Axes]:
    """Yield every choice of n axes and of a size from the text for each."""
    for axes in combinations(layout.axes, n):
        for sizes in product(written, repeat=n):
            yield dict(zip(axes, sizes, strict=True))


def others(layout: Layout, written: Sequence[int], skip: int = 0) -> Axes:
    """Return a prime size for each axis, ascending. No prime is in the text or one or two above a size in it."""
    near = {n + more for n in written for more in (0, 1, 2)}
    primes = (n for n in count(5, 2) if n not in near and all(n % d for d in range(3, n, 2)))
    return dict(zip(layout.axes, islice(primes, skip, None), strict=False))


def _is_fixed(subject: BatchRunner, reference: Runner, layout: Layout, axes: Axes, written: Sequence[int]) -> bool:
    """Return whether the sizes of these axes decide alone: right whatever the other axes are, wrong with other sizes for these."""
    here, elsewhere = others(layout, written), others(layout, written, skip=1) | axes
    if layout.numbers(elsewhere) > MOST_NUMBERS:
        return False
    beside = [layout.at(here | {axis: size + more for axis, size in axes.items()}) for more in (1, 2)]
    holds = any(are_right(reference, ask(subject, [layout.at(elsewhere)])))
    return holds and not any(are_right(reference, ask(subject, beside)))


def ask(subject: BatchRunner, calls: Sequence[Call]) -> list[Exchange]:
    """Return the calls, of no check, with the attempt's replies. Raises AttemptEnded."""
    return [Exchange("", call, reply) for call, reply in zip(calls, replies_of(subject, calls), strict=True)]


def are_right(reference: Runner, exchanges: Sequence[Exchange]) -> list[bool]:
    """Return whether the attempt answers each call as the reference does, which answers it."""
    found = [(e.reply, reference.execute(e.call)) for e in exchanges]
    return [mine.raised is None and due.raised is None and agree(mine, due) for mine, due in found]


# Find sizes that an attempt has fixed, from the shapes of its answers.


def has_fixed_size(reference: Runner, exchanges: Sequence[Exchange]) -> bool:
    """Return whether an axis of the answers keeps its size although it should change.

    Two or more answers are wrong in one axis only, and have the same size there instead of different ones.
    """
    sizes: dict[tuple[str, int, int, int], list[tuple[int, int]]] = defaultdict(list)
    for exchange in exchanges:
        target, leaves = target_of(exchange.call), cycle(range(exchange.call.form.count))
        outputs = zip(leaves, exchange.reply.outputs, reference.execute(exchange.call).outputs, strict=False)
        for leaf, mine, right in ((leaf, _shape(a), _shape(b)) for leaf, a, b in outputs):
            if mine is None or right is None or len(mine) != len(right):
                continue
            wrong = [axis for axis in range(len(mine)) if mine[axis] != right[axis]]
            if len(wrong) == 1:
                axis = wrong[0]
                sizes[target, leaf, axis - len(mine), len(mine)].append((mine[axis], right[axis]))
    return any(len({m for m, _ in pairs}) == 1 and len({r for _, r in pairs}) > 1 for pairs in sizes.values())


def _shape(output: Output) -> tuple[int, ...] | None:
    return None if output.tensor is None else tuple(output.tensor.shape)
