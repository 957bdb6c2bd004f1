"""Which recorded call is looked at: the one that explains itself best."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from manyheads.box.worker.messages import Build, Call
from manyheads.checks.marks import Layer
from manyheads.course import Assignment, Exercise
from manyheads.course.file import AssignmentRow, ExerciseRow
from manyheads.diagnosis.fingerprint import ReplyFingerprint
from manyheads.diagnosis.recording import PublicCheck, Recording
from manyheads.student.choose_example import examples
from manyheads.student.example import Example

SHAPES = {
    "split": "(x: (B, T, C), n_head: nh) -> (B, nh, T, hd)",
    "shown": "(x: (B, T, C), keep: (B, T) | None) -> (B, T, C)",
    "Module": "(n_embd: nh * hd, n_head: nh)(x: (B, T, C)) -> (B, T, C)",
}


def split(batch: int, tokens: int, channels: int, heads: int, **options: Any) -> tuple[Call, Tensor]:
    """A call and its answer."""
    x = torch.arange(float(batch * tokens * channels)).reshape(batch, tokens, channels) / 1000
    return Call("split", (x, heads), **options), x.unflatten(-1, (heads, -1)).transpose(1, 2)


def module(**attributes: bool) -> tuple[Call, Tensor]:
    return Call(Build("Module", (20, 4), attributes=attributes), (torch.ones(2, 7, 20),)), torch.ones(2, 7, 20)


def chosen(
    *recorded: tuple[Call, Tensor], layers: Sequence[int] = (), refused: Sequence[int] = (), **options: Any
) -> list[Example]:
    """The looks at these calls; each belongs to a check of its layer, by default of values."""
    names = range(len(recorded))
    checks = [
        PublicCheck(id=f"c{i}", title="", layer=layer, hint="", points=1, calls=(i,), facets=("outputs",), asks=())
        for i, layer in zip(names, layers or [Layer.VALUES] * len(recorded), strict=True)
    ]
    replies = tuple((ReplyFingerprint(raised="refused" if i in refused else None),) for i in names)
    calls, expected = tuple(call for call, _ in recorded), tuple((answer,) for _, answer in recorded)
    recording = Recording("e", "", tuple(checks), calls, expected, replies, mutants=(), words={})
    targets = {call.subject if isinstance(call.subject, str) else call.subject.target for call, _ in recorded}
    shapes = {name: text for name, text in SHAPES.items() if name in targets}
    return examples(exercise(shapes), recording, **options)


def exercise(shapes: Mapping[str, str]) -> Exercise:
    row = ExerciseRow(id="e", title="E", points=1, hint="h", shapes=dict(shapes))
    return Assignment(Path("course"), AssignmentRow(id="a", title="A", exercises=(row,))).exercises[0]


def sizes(example: Example) -> tuple[int, ...]:
    return tuple(example.axes.sizes[name] for name in ("B", "T", "C", "nh"))


def test_sizes_that_differ_come_before_sizes_that_do_not() -> None:
    (example,) = chosen(split(2, 3, 12, 3), split(2, 5, 12, 3))
    assert sizes(example) == (2, 5, 12, 3)


def test_a_smaller_batch_may_be_easier_to_tell_apart() -> None:
    """B·nh = 8 is T as well; with one sequence less it is not."""
    (example,) = chosen(split(4, 8, 14, 2))
    assert sizes(example) == (3, 8, 14, 2)
    x = example.call.args[0]
    assert isinstance(x, Tensor)
    assert torch.equal(example.expected, x.unflatten(-1, (2, -1)).transpose(1, 2))


def test_an_argument_that_is_left_out_has_no_batch_to_cut() -> None:
    x = torch.rand(4, 5, 7)
    (example,) = chosen((Call("shown", (x, None)), x))
    assert (example.call.args[1], example.expected.shape) == (None, (2, 5, 7))


def test_a_call_with_all_its_tensors_comes_before_one_that_leaves_one_out() -> None:
    x = torch.rand(4, 5, 7)
    (example,) = chosen((Call("shown", (x,)), x), (Call("shown", (x, torch.ones(4, 5) > 0)), x))
    assert len(example.call.args) == 2


@pytest.mark.parametrize(("other", "options"), [
    pytest.param(split(2, 5, 12, 4, random=True), {}, id="one at random"),
    pytest.param(split(2, 5, 12, 4), {"refused": [0]}, id="one that is refused"),
    pytest.param(split(2, 5, 12, 4, runs=2), {}, id="one that runs twice"),
    pytest.param(split(2, 5, 12, 4, only_build=True), {}, id="one that is not called"),
    pytest.param(split(2, 5, 12, 4), {"layers": [Layer.HYGIENE, Layer.VALUES]}, id="one of another layer"),
])  # fmt: skip
def test_what_is_out_of_the_ordinary_comes_last(other: tuple[Call, Tensor], options: dict[str, Any]) -> None:
    (example,) = chosen(other, split(2, 5, 24, 4), **options)
    assert sizes(example) == (2, 5, 24, 4)


def test_each_setting_of_a_module_is_looked_at_in_the_order_of_the_course() -> None:
    found = chosen(module(flash=True), module(flash=False), split(2, 5, 12, 4))
    assert [example.title for example in found] == [
        "split(x, n_head=4)",
        "Module(n_embd=20, n_head=4, flash=False)(x)",
        "Module(n_embd=20, n_head=4, flash=True)(x)",
    ]


def test_without_shapes_calls_are_looked_at_without_names() -> None:
    call, answer = split(2, 5, 12, 4)
    recording = Recording("e", "", (), (call,), ((answer,),), ((ReplyFingerprint(),),), mutants=(), words={})
    (example,) = examples(exercise({}), recording)
    assert (example.title, example.axes.shape((2, 5))) == ("split(…, 4)", "(2, 5)")
