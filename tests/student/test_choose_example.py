"""Which recorded call is looked at, what its sizes are called, and which is shown of those that an
attempt gets wrong.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from manyheads.box.worker.messages import Build, Call, PlantedDifference, StandIn
from manyheads.checks.hidden_check import Layer
from manyheads.course import Assignment, Exercise
from manyheads.course.course_yaml_schema import AssignmentRow, ExerciseRow, parse_signature
from manyheads.diagnosis.fault_dictionary import FaultDictionary, PublicCheck
from manyheads.diagnosis.fingerprint import ReplyFingerprint
from manyheads.judge.redact_hidden_inputs import Axes, axes_of
from manyheads.student.choose_example_calls import SAME, Example, ambiguity_of, examples
from manyheads.student.trace import number_in_words

SHAPES = {
    "split": "(x: (B, T, C), n_head: nh) -> (B, nh, T, hd)",
    "shown": "(x: (B, T, C), keep: (B, T) | None) -> (B, T, C)",
    "largest": "(x: (B, T, C)) -> ()",
    "Module": "(n_embd: nh * hd, n_head: nh)(x: (B, T, C)) -> (B, T, C)",
}


def split_call(
    batch: int, tokens: int, channels: int, heads: int, **options: Any
) -> tuple[Call, Tensor]:
    """A call and its answer."""
    x = torch.arange(float(batch * tokens * channels)).reshape(batch, tokens, channels) / 1000
    return Call("split", (x, heads), **options), x.unflatten(-1, (heads, -1)).transpose(1, 2)


def module(**attributes: bool) -> tuple[Call, Tensor]:
    return Call(
        Build("Module", (20, 4), attributes=attributes), (torch.ones(2, 7, 20),)
    ), torch.ones(2, 7, 20)


def chosen_examples(
    *recorded: tuple[Call, Tensor],
    layers: Sequence[int] = (),
    refused: Sequence[int] = (),
    **options: Any,
) -> list[Example]:
    """The looks at these calls; each belongs to a check of its layer, by default of values."""
    names = range(len(recorded))
    checks = [
        PublicCheck(
            id=f"c{i}",
            title="",
            layer=layer,
            hint="",
            points=1,
            calls=(i,),
            reply_fields=("outputs",),
            oracle_uses=(),
        )
        for i, layer in zip(names, layers or [Layer.VALUES] * len(recorded), strict=True)
    ]
    replies = tuple((ReplyFingerprint(raised="refused" if i in refused else None),) for i in names)
    calls, expected = (
        tuple(call for call, _ in recorded),
        tuple((answer,) for _, answer in recorded),
    )
    recording = FaultDictionary(
        "e", "", tuple(checks), calls, expected, replies, mutants=(), words={}
    )
    targets = {
        call.subject if isinstance(call.subject, str) else call.subject.target
        for call, _ in recorded
    }
    shapes = {name: text for name, text in SHAPES.items() if name in targets}
    return examples(exercise(shapes), recording, **options)


def exercise(shapes: Mapping[str, str]) -> Exercise:
    row = ExerciseRow(id="e", title="E", points=1, hint="h", shapes=dict(shapes))
    return Assignment(Path("course"), AssignmentRow(id="a", title="A", exercises=(row,))).exercises[
        0
    ]


def sizes(example: Example) -> tuple[int, ...]:
    return tuple(example.axes.sizes[name] for name in ("B", "T", "C", "nh"))


def test_sizes_that_differ_come_before_sizes_that_do_not():
    (example,) = chosen_examples(split_call(2, 3, 12, 3), split_call(2, 5, 12, 3))
    assert sizes(example) == (2, 5, 12, 3)


def test_a_smaller_batch_may_be_easier_to_tell_apart():
    """B·nh = 8 is T as well; with one sequence less it is not."""
    (example,) = chosen_examples(split_call(4, 8, 14, 2))
    assert sizes(example) == (3, 8, 14, 2)
    x = example.call.args[0]
    assert isinstance(x, Tensor)
    assert torch.equal(example.expected, x.unflatten(-1, (2, -1)).transpose(1, 2))


def test_an_argument_that_is_left_out_has_no_batch_to_cut():
    x = torch.rand(4, 5, 7)
    (example,) = chosen_examples((Call("shown", (x, None)), x))
    assert (example.call.args[1], example.expected.shape) == (None, (2, 5, 7))


def test_one_number_of_all_sequences_is_asked_of_all_and_compared_where_it_is_no_rounding():
    x = torch.rand(4, 5, 7)
    planted = PlantedDifference(8.0, 0.3)
    (example,) = chosen_examples((Call("largest", (x,), random=True, around=planted), x.max()))
    assert (example.compares_values, example.call.args[0]) == (True, x)


def test_a_call_with_all_its_tensors_comes_before_one_that_leaves_one_out():
    x = torch.rand(4, 5, 7)
    (example,) = chosen_examples(
        (Call("shown", (x,)), x), (Call("shown", (x, torch.ones(4, 5) > 0)), x)
    )
    assert len(example.call.args) == 2


@pytest.mark.parametrize(
    ("other", "options"),
    [
        pytest.param(split_call(2, 5, 12, 4, random=True), {}, id="one at random"),
        pytest.param(split_call(2, 5, 12, 4), {"refused": [0]}, id="one that is refused"),
        pytest.param(split_call(2, 5, 12, 4, runs=2), {}, id="one that runs twice"),
        pytest.param(split_call(2, 5, 12, 4, only_build=True), {}, id="one that is not called"),
        pytest.param(
            split_call(2, 5, 12, 4),
            {"layers": [Layer.HYGIENE, Layer.VALUES]},
            id="one of another layer",
        ),
    ],
)
def test_what_is_out_of_the_ordinary_comes_last(other, options):
    (example,) = chosen_examples(other, split_call(2, 5, 24, 4), **options)
    assert sizes(example) == (2, 5, 24, 4)


def test_each_setting_of_a_module_is_looked_at_in_the_order_of_the_course():
    selected = chosen_examples(module(flash=True), module(flash=False), split_call(2, 5, 12, 4))
    assert [example.title for example in selected] == [
        "split(x, n_head=4)",
        "Module(n_embd=20, n_head=4, flash=False)(x)",
        "Module(n_embd=20, n_head=4, flash=True)(x)",
    ]


def test_without_shapes_calls_are_looked_at_without_names():
    call, answer = split_call(2, 5, 12, 4)
    recording = FaultDictionary(
        "e", "", (), (call,), ((answer,),), ((ReplyFingerprint(),),), mutants=(), words={}
    )
    (example,) = examples(exercise({}), recording)
    assert (example.title, example.axes.shape((2, 5))) == ("split(…, 4)", "(2, 5)")


DIVIDE = parse_signature("(x: (B, T, C), n_head: nh) -> (B, nh, T, hd)")
MODULE = parse_signature("(n_embd: nh * hd, n_head: nh, block_size)(x: (B, T, C)) -> (B, T, C)")
X = torch.zeros(2, 5, 12)


SCORES = "(scores: (B, N), temperature: float) -> (B, N)"
DIVIDED, NUMBERS = {"B": 2, "T": 5, "C": 12, "nh": 3, "hd": 4}, {"B": 2, "N": 5}


@pytest.mark.parametrize(
    ("signature", "call", "returned", "found"),
    [
        pytest.param(DIVIDE, Call("split", (X, 3)), (2, 3, 5, 4), DIVIDED, id="by position"),
        pytest.param(
            DIVIDE, Call("split", (X,), {"n_head": 3}), (2, 3, 5, 4), DIVIDED, id="one by name"
        ),
        pytest.param(
            DIVIDE,
            Call("split", (), {"n_head": 3, "x": X}),
            (2, 3, 5, 4),
            DIVIDED,
            id="all by name",
        ),
        pytest.param(
            MODULE,
            Call(Build("M", (12, 3), {"block_size": 9}), (X,)),
            (2, 5, 12),
            {**DIVIDED, "block_size": 9},
            id="an unknown of a product is worked out",
        ),
        *(
            pytest.param(
                parse_signature(SCORES),
                Call("f", (X[:, :, 0], any_)),
                (2, 5),
                NUMBERS,
                id=f"measures no axis: {any_}",
            )
            for any_ in (0.4, 2.5, 2)
        ),
        pytest.param(
            parse_signature("(module: M, x: (B, T, C)) -> ()"),
            Call("f", (Build("M", (12, 3, 9)), X)),
            (),
            {**DIVIDED, "block_size": 9},
            id="a module as an argument is read as its own entry says",
        ),
        pytest.param(
            parse_signature("(mha: {n_head: nh, head_dim: hd}, x: (B, T, C)) -> (B, T, C)"),
            Call("f", (StandIn({}, {"n_head": 3, "head_dim": 4}), X)),
            (2, 5, 12),
            DIVIDED,
            id="attributes of a stand-in",
        ),
    ],
)
def test_sizes_are_read_from_arguments(signature, call, returned, found):
    assert dict(axes_of(signature, call, returned, {"M": (MODULE,)}).sizes) == found


@pytest.mark.parametrize(
    ("call", "returned"),
    [
        pytest.param(
            Call("split", (torch.zeros(5, 12), 3)), (3, 5, 4), id="another number of axes"
        ),
        pytest.param(Call("split", (X,)), (2, 3, 5, 4), id="an argument that is missing"),
        pytest.param(Call("split", (X, 4)), (2, 3, 5, 4), id="two values for one axis"),
        pytest.param(Call("split", (X, None)), (2, 3, 5, 4), id="no number where one belongs"),
        pytest.param(Call("split", (3, 3)), (2, 3, 5, 4), id="no tensor where one belongs"),
    ],
)
def test_a_call_that_the_signature_does_not_fit_has_no_axes(call, returned):
    assert axes_of(DIVIDE, call, returned, {}) is None
    assert axes_of(parse_signature(SCORES), Call("f", (X[:, :, 0],)), (2, 5), {}) is None


@pytest.fixture
def axes() -> Axes:
    call = Call(Build("M", (20, 4, 9)), (torch.zeros(2, 7, 20),))
    named_axes = axes_of(MODULE, call, (2, 7, 20), {})
    assert named_axes is not None
    return named_axes


def test_shapes_read_as_the_lesson_writes_them(axes):
    assert axes.shape((2, 7, 20)) == "(B, T, C)"
    assert axes.shape((2, 4, 7, 5)) == "(B, nh, T, hd)"
    assert axes.shape((14, 60, 8, 1, 1234)) == "(B·T, 3·C, B·nh, 1, 1234)"
    assert axes.shape(()) == "()"


def test_an_axis_that_could_be_two_things_has_no_name():
    call = Call("split", (torch.zeros(2, 3, 12), 3))
    named_axes = axes_of(DIVIDE, call, (2, 3, 3, 4), {})
    assert named_axes.shape((2, 3, 3, 4)) == "(B, 3, 3, hd)"
    assert ambiguity_of(named_axes) >= SAME


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (5**0.5, "2.236 (√hd)"),
        (20**0.5, "4.472 (√C)"),
        (5**-0.5, "0.4472 (1/√hd)"),
        (5.0, "5 (hd)"),
        (2.0, "2 (√nh)"),
        (0.05, "0.05 (1/C)"),
        (8.0, "8"),
    ],
)
def test_a_number_is_named_by_what_it_could_be(axes, value, shown):
    assert number_in_words(axes, value, axes, value) == shown
