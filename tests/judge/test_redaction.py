"""Evidence is redacted: an attempt must not show hidden inputs to a student through its answers.

Also how hidden inputs are drawn from a secret, sent to a device, and compared with mutants.
"""

import math
import sys
import types

import pytest
import torch

from manyheads.box.worker.messages import (
    Build,
    Call,
    DeviceArgument,
    Entry,
    ModuleFacts,
    Operations,
    Output,
    Reply,
    StandIn,
)
from manyheads.checks.asserts import assert_finite, assert_shape
from manyheads.checks.explain_exceptions import SafeText
from manyheads.checks.hidden_check import (
    CheckFailed,
    Draw,
    Evidence,
    Listed,
    Number,
    Percent,
    input_seed,
)
from manyheads.checks.runner import Exchange, cast
from manyheads.diagnosis.fingerprint import is_comparable
from manyheads.judge.redact_hidden_inputs import REDACTED_TEXT, redact
from tests.make import cases

X = torch.zeros(5, 7, 66)  # B, T, C = nh · hd = 6 · 11
EXPECTED = (5, 6, 7, 11)


def exchange(call, *shape, **reply):
    """Return a call with its reply; without a shape the reply has no output."""
    outputs = (Output("tensor", None, "float64", "cpu", shape),) if shape else ()
    return Exchange("check", call, Reply(outputs, **reply))


def shape_in_evidence(*shape, call):
    """Return the shape that the evidence of `assert_shape` shows for an output of this shape."""
    with pytest.raises(CheckFailed) as failed:
        assert_shape(torch.empty(shape, device="meta"), EXPECTED)
    text = redact(failed.value.evidence, [exchange(call, *shape)], failed.value.expected)
    return text.partition("yours has ")[2]


@cases(
    "shape, shown_text",
    {
        "axes in another order": ((5, 7, 6, 11), "(5, 7, 6, 11)"),
        "a size of the call": ((5, 7, 66), "(5, 7, 66)"),
        "a size that is smaller than one of the call": ((5, 1, 7, 3), "(5, 1, 7, 3)"),
        "merged axes": ((5, 77, 6), "(5, 77, 6)"),
        "packed layers": ((5, 7, 132), "(5, 7, 132)"),
        "any other size": ((0, 12345), "(0, another size)"),
        "a size that is little larger": ((5, 7, 6, 11, 79), "(5, 7, 6, 11, another size)"),
        "an enormous size": ((1 << 39, 0), "(…, 0)"),
        "axes beyond two more than expected": ((1, 2) * 6, "(1, 2, 1, 2, 1, 2, …)"),
    },
)
def test_a_shape_shows_only_sizes_that_the_call_explains(shape, shown_text):
    assert shape_in_evidence(*shape, call=Call("split_heads", (X,), {"n_head": 6})) == shown_text


@cases(
    "call",
    {
        "a number": Call("f", (1024,)),
        "a tensor": Call("f", (torch.zeros(1024),)),
        "a tensor by name": Call("f", (), {"mask": torch.zeros(1024)}),
        "an argument of a module": Call(Build("M", (1024,)), (X,)),
        "a weight of a module": Call(Build("M", state={"w": torch.zeros(1024, 2)}), (X,)),
        "a layer of a stand-in": Call("f", (StandIn({"proj": torch.zeros(3, 1024)}, {}), X)),
    },
)
def test_a_size_is_shown_if_the_call_contains_it(call):
    assert shape_in_evidence(5, 1024, call=call) == "(5, 1024)"


@cases(
    "factor, shown_text",
    {
        "the root of head_dim": ("3.32", "3.317"),
        "one over the root of n_head": ("0.408", "0.4082"),
        "a size": ("66", "66"),
        "the root of a quotient of sizes": ("0.798", "0.7977"),
        "a power of ten": ("1e+04", "1e+04"),
        "a half": ("0.5", "0.5"),
        "a message": ("1.253e+45", "some number"),
        "any other number": ("7.77", "some number"),
    },
)
def test_a_factor_is_shown_only_if_a_likely_mistake_explains_it(factor, shown_text):
    call = Call("attention_scores", (torch.zeros(5, 7, 66), torch.zeros(6, 11)))
    digits = 4 if factor.startswith("1.253") else 3
    evidence = Evidence("every score is {} times what it should be", Number(float(factor), digits))
    expected = f"every score is {shown_text} times what it should be"
    assert redact(evidence, [exchange(call)]) == expected


def test_a_factor_chosen_by_an_attempt_carries_few_bits():
    exchanges = [exchange(Call("attention_scores", tuple(range(2, 40)), {"dropout": 0.3}))]
    chosen = [Evidence("{} times", Number(10 ** (n / 100), 3)) for n in range(-1000, 1000)]
    assert len({redact(evidence, exchanges) for evidence in chosen}) < 300


@cases(
    "argument, shape, counts",
    {
        "sizes that the call lacks": (X, (1234, 2), "… of …"),
        "sizes of the call": (torch.zeros(3, 23), (3, 23), "69 of 69"),
    },
)
def test_counts_of_values_are_shown_only_if_the_call_explains_them(argument, shape, counts):
    with pytest.raises(CheckFailed) as failed:
        assert_finite(torch.full(shape, torch.nan), "the output")
    expected = f"the output: {counts} values are NaN, the first at (0, 0)"
    assert redact(failed.value.evidence, [exchange(Call("f", (argument,)), *shape)]) == expected


def test_sizes_chosen_for_a_parameter_are_redacted():
    entries = {"W_query.weight": Entry((31415, 66), "float64", "cpu")}
    facts = ModuleFacts(
        entries, {}, training=False, changed=False, unloaded=(), attributes={"block_size": 27182}
    )
    evidence = Evidence(
        "{} should have shape {}; yours has {}, block_size is {}",
        "W_query.weight",
        (66, 66),
        (31415, 66),
        27182,
    )
    assert redact(evidence, [exchange(Call(Build("M", (66,)), (X,)), modules=(facts,))]) == (
        "W_query.weight should have shape (66, 66); yours has (another size, 66), "
        "block_size is another size"
    )


@cases(
    "value, shown_text",
    {
        "a long list": ([1, 2, 1, 2, 1, 2, 1], "[1, 2, 1, 2, 1, …]"),
        "a size in a list": ([1, 12345], "[1, another size]"),
        "a size in a series": (Listed([1, 12345], " and "), "1 and another size"),
        "a scale of dropout": (Number(4 / 3), "1.333"),
        "a number near a scale of dropout": (Number(1.338), "some number"),
        "a number of the call": (0.25, "0.25"),
        "a percentage": (Percent(0.139, 1), "13.9%"),
        "a great percentage": (Percent(12345.678, 1), "some number"),
        "no percentage": (Percent(math.nan), "some number"),
        "a truth value": (True, "True"),
        "a text without digits": ("other heads", "other heads"),
        "the name of a dtype": (SafeText("float32"), "float32"),
        "a text with digits": ("12345 of them", REDACTED_TEXT),
        "evidence in evidence": (Evidence("row {}", 12345), "row another size"),
    },
)
def test_values_are_redacted_if_an_operation_has_shapes_that_the_call_lacks(value, shown_text):
    call = Call(Build("M", (66,), {"dropout": 0.25}), (X,))
    operations = Operations(fused=False, shapes=((1, 2, 1, 2, 1, 2, 1), (1, 12345)))
    evidence = Evidence("it is {}.", value)
    assert redact(evidence, [exchange(call, operations=operations)]) == f"it is {shown_text}."


@cases(
    "value, shown_text",
    {
        "a size that the attempt returned": (12345, "another size"),
        "a larger number, which the attempt may have made": (54321, "…"),
        "minus such a size": (-12345, "another size"),
        "minus a larger number": (-54321, "…"),
        "a size of the call": (66, "66"),
        "a shape": ((3, 12345), "(3, another size)"),
        "a shape of many axes": ((1, 2) * 4, "(1, 2, 1, 2, 1, …)"),
        "a factor": (Number(1.2345e67), "some number"),
        "a negative factor": (Number(-0.137), "some number"),
        "an infinite factor": (Number(float("inf")), "some number"),
        "zero": (Number(0.0), "0"),
        "minus a half": (Number(-0.5), "-0.5"),
    },
)
def test_values_are_redacted_if_the_attempt_chose_the_size_of_its_output(value, shown_text):
    evidence = Evidence("of 31415 and 2.718, it is {}.", value)
    redacted = redact(evidence, [exchange(Call("f", (X,)), 12345)])
    assert redacted == f"of 31415 and 2.718, it is {shown_text}."


def test_all_numbers_are_shown_if_the_output_has_the_expected_shape():
    evidence = Evidence(
        "{} of {} values differ, by {} of the largest; T = {}, channels {}",
        2310,
        2310,
        Percent(0.139, 1),
        4096,
        [0, 1, 2, 3, 4, 5, 6],
    )
    assert redact(evidence, [exchange(Call("f", (X,)), *EXPECTED)], EXPECTED) == str(evidence)


CHECK = """
from manyheads.checks import CheckFailed

def fail(number):
    raise CheckFailed({})
"""


@cases(
    "sentence, shown_text",
    {
        "a sentence": ('"the weights sum to 31"', "the weights sum to 31"),
        "a sentence on two lines": (
            '"the weights sum to 31, "\n        "and not to 1"',
            "the weights sum to 31, and not to 1",
        ),
        "a sentence with a number": ('f"row {number} of 31"', REDACTED_TEXT),
        "a text that is formatted": ('"row %s of 31" % number', REDACTED_TEXT),
        "a formatted text without digits": ('f"{str(True)} weights"', "True weights"),
    },
)
def test_a_text_with_digits_is_shown_only_if_it_is_a_literal_of_a_check(
    tmp_path, monkeypatch, sentence, shown_text
):
    path = tmp_path / "grader" / "checks" / "test_texts.py"
    path.parent.mkdir(parents=True)
    path.write_text(CHECK.format(sentence), encoding="utf-8")
    module = types.ModuleType("checks_with_texts")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), vars(module))
    with pytest.raises(CheckFailed) as failed:
        module.fail(12345)
    assert redact(failed.value.evidence, []) == shown_text


def test_the_seed_of_inputs_depends_on_secret_student_exercise_and_text():
    keys = [
        (b"secret", "ada", "exercise", "hash"),
        (b"another secret", "ada", "exercise", "hash"),
        (b"secret", "bob", "exercise", "hash"),
        (b"secret", "ada", "exercise", "other"),
        (b"secret", "adae", "xercise", "hash"),
    ]
    seeds = {key: input_seed(*key) for key in keys}
    assert len({*seeds.values()}) == len(keys)
    assert seeds == {key: input_seed(*key) for key in keys}


def test_drawn_sizes_differ_pairwise():
    for seed in range(200):
        sizes = vars(Draw(seed).sizes(B=(2, 4), T=(5, 9), nh=(2, 4), hd=(3, 7)))
        assert len(set(sizes.values())) == 4


def test_a_call_for_a_gpu_keeps_its_tensors_on_the_cpu():
    """Tensors travel as bytes of the CPU; the judge needs no GPU to send them."""
    call = Call(Build("C", device="meta"), (X, Build("C")), {"y": X}, cotangent=X)
    sent = cast(call, "float64", "cuda")
    assert (sent.device, sent.subject.device, sent.args[1].device) == ("cuda", "meta", "cuda")
    for tensor in (sent.args[0], sent.kwargs["y"], sent.cotangent):
        assert (tensor.device.type, tensor.dtype) == ("cpu", torch.float64)
    assert cast(call, "float64").device is None


@cases(
    "call, expected",
    {
        "an ordinary call": (Call("f", (X,)), True),
        "half precision": (Call("f", (X,), autocast="float16"), False),
        "memory": (Call("f", (X,), memory=True), False),
        "a GPU by name": (Call("f", (2,), {"device": DeviceArgument("cuda")}), False),
        "the CPU by name": (Call("f", (2,), {"device": DeviceArgument("cpu")}), True),
        "a module moved to a GPU": (Call(Build("C", device="cuda"), (X,)), False),
        "a module that stays": (Call(Build("C", state={}), (X,)), True),
    },
)
def test_a_call_that_needs_a_gpu_is_not_compared_with_mutants(call, expected):
    assert is_comparable(call) is expected
