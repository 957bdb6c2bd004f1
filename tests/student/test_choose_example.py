"""Which recorded call is shown as an example, and how its sizes and numbers are named.

Sizes that differ from each other are easier to recognise: B batch, T tokens, C channels, nh heads.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from manyheads.box.worker.messages import Build, Call, PlantedDifference, StandIn
from manyheads.checks.hidden_check import Layer
from manyheads.course import Assignment
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
X = torch.rand(4, 5, 7)


def split_call(
    batch: int, tokens: int, channels: int, heads: int, **options: Any
) -> tuple[Call, Tensor]:
    """Return a call of split and its expected output."""
    x = torch.arange(float(batch * tokens * channels)).reshape(batch, tokens, channels) / 1000
    return Call("split", (x, heads), **options), x.unflatten(-1, (heads, -1)).transpose(1, 2)


def module_call(**attributes: bool) -> tuple[Call, Tensor]:
    """Return a call of a module with these attributes, and its expected output."""
    x = torch.ones(2, 7, 20)
    return Call(Build("Module", (20, 4), attributes=attributes), (x,)), x


def chosen_examples(
    *recorded: tuple[Call, Tensor],
    layers: Sequence[Layer] = (Layer.VALUES,) * 3,
    refused: Sequence[int] = (),
    shapes: Sequence[str] = tuple(SHAPES),
) -> list[Example]:
    """Return the examples that are chosen among these calls with their expected outputs.

    Each call belongs to a different check, in the layer at the same index.
    refused: indices of calls that the reference refuses. shapes: functions that have a signature.
    """
    checks = []
    replies = []
    for i, layer in zip(range(len(recorded)), layers, strict=False):
        texts = {"id": f"c{i}", "title": "", "hint": ""}
        fields = {"calls": (i,), "reply_fields": ("outputs",), "oracle_uses": ()}
        checks.append(PublicCheck(**texts, **fields, layer=layer, points=1))
        replies.append((ReplyFingerprint(raised="refused" if i in refused else None),))
    calls = tuple(call for call, _ in recorded)
    expected = tuple((answer,) for _, answer in recorded)
    recording = FaultDictionary(
        "e", "", tuple(checks), calls, expected, tuple(replies), mutants=(), words={}
    )
    targets = {getattr(call.subject, "target", call.subject) for call in calls}
    signatures = {name: SHAPES[name] for name in shapes if name in targets}
    row = ExerciseRow(id="e", title="E", points=1, hint="h", shapes=signatures)
    assignment = Assignment(Path("course"), AssignmentRow(id="a", title="A", exercises=(row,)))
    return examples(assignment.exercises[0], recording)


def sizes(example: Example) -> tuple[int, ...]:
    """Return the sizes B, T, C and nh of the example."""
    return tuple(example.axes.sizes[name] for name in ("B", "T", "C", "nh"))


def test_a_call_with_different_sizes_is_preferred():
    (example,) = chosen_examples(split_call(2, 3, 12, 3), split_call(2, 5, 12, 3))
    assert sizes(example) == (2, 5, 12, 3)


def test_a_sequence_is_removed_if_the_sizes_then_differ():
    """B·nh = 8 equals T; with one sequence less, it does not."""
    (example,) = chosen_examples(split_call(4, 8, 14, 2))
    assert sizes(example) == (3, 8, 14, 2)
    expected = example.call.args[0].unflatten(-1, (2, -1)).transpose(1, 2)
    assert torch.equal(example.expected, expected)


def test_removing_sequences_keeps_an_argument_that_is_none():
    (example,) = chosen_examples((Call("shown", (X, None)), X))
    assert (example.call.args[1], example.expected.shape) == (None, (2, 5, 7))


def test_no_sequence_is_removed_if_the_output_is_one_number():
    planted = PlantedDifference(8.0, 0.3)
    (example,) = chosen_examples((Call("largest", (X,), random=True, around=planted), X.max()))
    assert (example.compares_values, example.call.args[0]) == (True, X)


def test_a_call_with_all_its_tensors_is_preferred():
    calls = [Call("shown", (X,)), Call("shown", (X, torch.ones(4, 5) > 0))]
    (example,) = chosen_examples(*((call, X) for call in calls))
    assert len(example.call.args) == 2


@pytest.mark.parametrize(
    ("call_options", "example_options"),
    [
        pytest.param({"random": True}, {}, id="a random call"),
        pytest.param({}, {"refused": [0]}, id="a refused call"),
        pytest.param({"runs": 2}, {}, id="a call that runs twice"),
        pytest.param({"only_build": True}, {}, id="a module that is only built"),
        pytest.param({}, {"layers": [Layer.HYGIENE, Layer.VALUES]}, id="a call of another layer"),
    ],
)
def test_an_unusual_call_is_chosen_last(call_options, example_options):
    unusual = split_call(2, 5, 12, 4, **call_options)
    (example,) = chosen_examples(unusual, split_call(2, 5, 24, 4), **example_options)
    assert sizes(example) == (2, 5, 24, 4)


def test_each_setting_of_a_module_has_an_example_in_the_order_of_the_course():
    selected = chosen_examples(
        module_call(flash=True), module_call(flash=False), split_call(2, 5, 12, 4)
    )
    assert [example.title for example in selected] == [
        "split(x, n_head=4)",
        "Module(n_embd=20, n_head=4, flash=False)(x)",
        "Module(n_embd=20, n_head=4, flash=True)(x)",
    ]


def test_an_example_without_a_signature_has_no_names_for_its_sizes():
    (example,) = chosen_examples(split_call(2, 5, 12, 4), shapes=())
    assert (example.title, example.axes.shape((2, 5))) == ("split(…, 4)", "(2, 5)")


DIVIDE = SHAPES["split"]
MODULE = "(n_embd: nh * hd, n_head: nh, block_size)(x: (B, T, C)) -> (B, T, C)"
SCORES = "(scores: (B, N), temperature: float) -> (B, N)"
Z = torch.zeros(2, 5, 12)
DIVIDED, BUILT = {"B": 2, "T": 5, "C": 12, "nh": 3, "hd": 4}, {"block_size": 9}


def axes_in(signature: str, call: Call, returned: tuple[int, ...]) -> Axes | None:
    """Return the named sizes of a call with this signature and this output shape."""
    return axes_of(parse_signature(signature), call, returned, {"M": (parse_signature(MODULE),)})


@pytest.mark.parametrize(
    ("signature", "call", "returned", "expected"),
    [
        pytest.param(DIVIDE, Call("f", (Z, 3)), (2, 3, 5, 4), DIVIDED, id="by position"),
        pytest.param(
            DIVIDE, Call("f", (), {"n_head": 3, "x": Z}), (2, 3, 5, 4), DIVIDED, id="by name"
        ),
        pytest.param(
            MODULE,
            Call(Build("M", (12, 3), BUILT), (Z,)),
            (2, 5, 12),
            DIVIDED | BUILT,
            id="the unknown factor of a product",
        ),
        pytest.param(
            SCORES,
            Call("f", (Z[:, :, 0], 2.5)),
            (2, 5),
            {"B": 2, "N": 5},
            id="a float is not an axis",
        ),
        pytest.param(
            SCORES,
            Call("f", (Z[:, :, 0], 2)),
            (2, 5),
            {"B": 2, "N": 5},
            id="an int in place of a float is not an axis",
        ),
        pytest.param(
            "(module: M, x: (B, T, C)) -> ()",
            Call("f", (Build("M", (12, 3, 9)), Z)),
            (),
            DIVIDED | BUILT,
            id="a module as an argument",
        ),
        pytest.param(
            "(mha: {n_head: nh, head_dim: hd}, x: (B, T, C)) -> (B, T, C)",
            Call("f", (StandIn({}, {"n_head": 3, "head_dim": 4}), Z)),
            (2, 5, 12),
            DIVIDED,
            id="attributes of a stand-in",
        ),
    ],
)
def test_sizes_are_read_from_the_arguments(signature, call, returned, expected):
    assert dict(axes_in(signature, call, returned).sizes) == expected


@pytest.mark.parametrize(
    ("arguments", "returned"),
    [
        pytest.param((Z[0], 3), (3, 5, 4), id="another number of axes"),
        pytest.param((Z,), (2, 3, 5, 4), id="an argument is missing"),
        pytest.param((Z, 4), (2, 3, 5, 4), id="two values for one axis"),
        pytest.param((Z, None), (2, 3, 5, 4), id="None in place of a number"),
        pytest.param((3, 3), (2, 3, 5, 4), id="a number in place of a tensor"),
    ],
)
def test_a_call_that_does_not_fit_its_signature_has_no_named_sizes(arguments, returned):
    assert axes_in(DIVIDE, Call("split", arguments), returned) is None


@pytest.fixture
def axes():
    """Return the axes B = 2, T = 7, C = 20, nh = 4, hd = 5."""
    return axes_in(MODULE, Call(Build("M", (20, 4, 9)), (torch.zeros(2, 7, 20),)), (2, 7, 20))


def test_shapes_are_written_as_in_the_lesson(axes):
    assert axes.shape((2, 4, 7, 5)) == "(B, nh, T, hd)"
    assert axes.shape((14, 60, 8, 1, 1234)) == "(B·T, 3·C, B·nh, 1, 1234)"
    assert axes.shape(()) == "()"


def test_a_size_that_fits_two_axes_has_no_name():
    axes = axes_in(DIVIDE, Call("split", (torch.zeros(2, 3, 12), 3)), (2, 3, 3, 4))
    assert axes.shape((2, 3, 3, 4)) == "(B, 3, 3, hd)"
    assert ambiguity_of(axes) >= SAME


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (20**0.5, "4.472 (√C)"),
        (5**-0.5, "0.4472 (1/√hd)"),
        (5.0, "5 (hd)"),
        (2.0, "2 (√nh)"),
        (0.05, "0.05 (1/C)"),
        (8.0, "8"),
    ],
)
def test_a_number_is_explained_by_the_size_that_it_comes_from(axes, value, text):
    assert number_in_words(axes, value, axes, value) == text
