"""What a student may read, and what is withheld; what inputs are drawn; checks that one device
alone has.
"""

import math
import sys
import types
from pathlib import Path

import pytest
import torch

from manyheads.box.worker.answer_call import raised_by
from manyheads.box.worker.messages import (
    Build,
    Call,
    DeviceArgument,
    Entry,
    ModuleFacts,
    Operations,
    Output,
    Raised,
    Reply,
    StandIn,
)
from manyheads.checks.asserts import assert_finite, assert_shape
from manyheads.checks.explain_exceptions import (
    SafeText,
    explain,
    is_dtype_fault,
    kind_of,
    sanitize,
    says_unwritten,
)
from manyheads.checks.hidden_check import (
    CheckFailed,
    Draw,
    Evidence,
    Layer,
    Listed,
    Number,
    Percent,
    Value,
    check,
    input_seed,
)
from manyheads.checks.runner import Exchange, cast
from manyheads.diagnosis.fingerprint import is_comparable
from manyheads.judge.redact_hidden_inputs import REDACTED_TEXT, redact
from manyheads.judge.run_hidden_checks import HiddenChecks


def raised_error(
    exc_type: str, message: str, line: int | None = 12, base: str = "Exception"
) -> Raised:
    return Raised(exc_type, (exc_type, base, "BaseException"), message, "call", line)


@pytest.mark.parametrize(
    ("what", "says"),
    [
        pytest.param(
            raised_error(
                "RuntimeError", "view size is not compatible with input tensor's size and stride"
            ),
            "raised RuntimeError on line 12: a .view of a tensor",
            id="a view that is not contiguous",
        ),
        pytest.param(
            raised_error("RuntimeError", "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
            "shapes cannot be multiplied",
            id="shapes that cannot be multiplied",
        ),
        *(
            pytest.param(
                raised_error(exc_type, message),
                "a layer is used where a tensor is expected",
                id=message,
            )
            for exc_type, message in (
                ("AttributeError", "'Linear' object has no attribute 'view'"),
                ("TypeError", "unsupported operand type(s) for @: 'Tensor' and 'Linear'"),
                (
                    "TypeError",
                    "dropout(): argument 'input' (position 1) must be Tensor, not Linear",
                ),
                (
                    "TypeError",
                    (
                        "masked_fill() received an invalid combination of arguments - got "
                        "(Linear, float)"
                    ),
                ),
                ("TypeError", "cannot unpack non-iterable Linear object"),
                (
                    "RuntimeError",
                    "Tensor type unknown to einops <class 'torch.nn.modules.linear.Linear'>",
                ),
            )
        ),
        pytest.param(
            raised_error("AttributeError", "cannot assign module before Module.__init__() call"),
            "before super",
            id="a missing super().__init__()",
        ),
        pytest.param(
            raised_error(
                "RuntimeError",
                "The size of tensor a (5) must match the size of tensor b (8) at dimension 3",
            ),
            "two tensors whose shapes do not fit each other",
            id="shapes that do not fit, of a mask or of anything else",
        ),
        pytest.param(
            raised_error("NotImplementedError", "", base="RuntimeError"),
            "nothing is written here yet",
            id="a stub",
        ),
        pytest.param(
            raised_error("Sneaky", "0.123 0.456"),
            "raised Exception on line 12",
            id="an exception of the student's own",
        ),
    ],
)
def test_an_exception_is_explained_with_the_students_line(what, says):
    assert says in explain(what)


OF_PYTORCH = {
    "a softmax of a bool mask": (
        lambda: MASK.softmax(-1),
        "PyTorch does not have for this dtype",
        None,
    ),
    "a product of bool masks": (lambda: MASK @ MASK, "PyTorch does not have for this dtype", None),
    "a mask of numbers turned around": (
        lambda: NUMBERS & NUMBERS,
        "where a bool one is needed",
        "mask_not_bool",
    ),
    "a sparse softmax": (
        lambda: NUMBERS.to_sparse().softmax(-1),
        "does not have for this kind of tensor",
        None,
    ),
    "rows chosen by a bool tensor": (
        lambda: META[META > 0],
        "does not have for this kind of tensor",
        None,
    ),
    "a clamp of complex numbers": (
        lambda: NUMBERS.cfloat().clamp(0),
        "for this kind of tensor",
        None,
    ),
    "numbers from nowhere": (lambda: NUMBERS.to("meta").cpu(), "on a device that keeps none", None),
}
MASK, NUMBERS, META = (
    torch.ones(3, 3, dtype=torch.bool),
    torch.ones(3, 3),
    torch.ones(3, 2, device="meta"),
)
ONE, TWO = torch.ones(2, 3, 3), torch.ones(2, 3, 3, dtype=torch.float64)


@pytest.mark.parametrize(("asks", "says", "proves"), OF_PYTORCH.values(), ids=OF_PYTORCH)
def test_what_pytorch_does_not_have_is_not_an_unwritten_function(asks, says, proves):
    """It raises NotImplementedError, as a stub does. The exceptions are real: their words are not
    ours.
    """
    with pytest.raises((NotImplementedError, RuntimeError)) as caught:
        asks()
    error = raised_by(caught.value, "call", "")
    assert says in explain(error)
    assert kind_of(error).misconception == proves
    assert not says_unwritten(error)


@pytest.mark.parametrize(
    "asks",
    [
        pytest.param(lambda: ONE @ TWO, id="a product"),
        pytest.param(
            lambda: torch.baddbmm(ONE, TWO, TWO), id="a product with a mask of its own dtype"
        ),
        pytest.param(lambda: torch.addmm(ONE[0], TWO[0], TWO[0]), id="of matrices"),
        pytest.param(lambda: ONE.lerp(TWO, 0.5), id="a mean of two"),
    ],
)
def test_tensors_of_two_dtypes_are_told_in_whatever_operation(asks):
    with pytest.raises(RuntimeError) as caught:
        asks()
    assert is_dtype_fault(raised_by(caught.value, "call", ""))


def test_the_students_message_is_not_repeated():
    assert says_unwritten(raised_error("NotImplementedError", "", base="RuntimeError"))
    assert "0.123" not in explain(raised_error("ValueError", "hidden input 0.123"))


def test_an_argument_error_inside_the_students_code_is_not_the_interfaces():
    message = "softmax() got an unexpected keyword argument 'axes'"
    assert kind_of(raised_error("TypeError", message, line=3)) is None
    assert kind_of(raised_error("TypeError", message, line=None)).misconception == "interface"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("a\nb\x1b[31m\x00c", "a b [31m c", id="control characters are gone"),
        pytest.param("::error::x", ":error:x", id="no command to a CI runner"),
        pytest.param("x" * 400, "x" * 299 + "…", id="cut at 300 characters"),
        pytest.param("√head_dim … ok", "√head_dim … ok", id="ordinary text stays"),
    ],
)
def test_text_is_made_plain(text, shown):
    assert sanitize(text) == shown


def test_the_same_attempt_meets_the_same_inputs_and_another_meets_others():
    seed = input_seed(b"secret", "ada", "exercise", "hash")
    assert seed == input_seed(b"secret", "ada", "exercise", "hash")
    arguments = (
        ("bob", "exercise", "hash"),
        ("ada", "exercise", "other"),
        ("adae", "xercise", "hash"),
    )
    other_seeds = {input_seed(b"secret", *args) for args in arguments}
    assert seed not in other_seeds
    assert len(other_seeds) == 3
    assert seed != input_seed(b"another secret", "ada", "exercise", "hash")


def test_sizes_differ_pairwise():
    for seed in range(200):
        sizes = vars(Draw(seed).sizes(B=(2, 4), T=(5, 9), nh=(2, 4), hd=(3, 7)))
        assert len(set(sizes.values())) == 4


CHECKS = '''
from manyheads.checks import Layer, check

@check(points=1, layer=Layer.SHAPE)
def test_anywhere(attempt):
    """is checked anywhere"""

@check(points=0, layer=Layer.HYGIENE, device="cuda")
def test_on_a_gpu(attempt):
    """is checked on a GPU"""
'''


@pytest.mark.parametrize(
    ("device", "expected"), [("cpu", ["anywhere"]), ("cuda", ["anywhere", "on_a_gpu"])]
)
def test_a_session_collects_what_its_device_has(
    tmp_path: Path, device: str, expected: list[str]
) -> None:
    file = tmp_path / "test_of_devices.py"
    file.write_text(CHECKS)
    collected = HiddenChecks([file], device).initial_outcomes(file)
    assert [outcome.id for outcome in collected] == expected
    assert sum(outcome.points for outcome in collected) == 1


def test_a_check_of_one_device_with_points_is_refused() -> None:
    with pytest.raises(ValueError, match="a check that runs on cuda alone gives no points"):
        check(points=0.5, layer=Layer.HYGIENE, device="cuda")


def test_a_call_for_a_gpu_says_so_and_keeps_its_tensors_where_they_are() -> None:
    """They travel as bytes of the CPU's; the judge needs no GPU to send them."""
    call = Call(Build("C", device="meta"), (X, Build("C")), {"y": X}, cotangent=X)
    sent = cast(call, "float64", "cuda")
    assert sent.device == "cuda"
    assert isinstance(sent.subject, Build)
    assert isinstance(sent.args[1], Build)
    assert (sent.subject.device, sent.args[1].device) == ("meta", "cuda")
    for tensor in (sent.args[0], sent.kwargs["y"], sent.cotangent):
        assert isinstance(tensor, torch.Tensor)
        assert (tensor.device.type, tensor.dtype) == ("cpu", torch.float64)
    assert cast(call, "float64").device is None


X = torch.ones(2)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param(Call("f", (X,)), True, id="an ordinary call"),
        pytest.param(Call("f", (X,), autocast="float16"), False, id="half precision"),
        pytest.param(Call("f", (X,), memory=True), False, id="memory"),
        pytest.param(
            Call("f", (2,), {"device": DeviceArgument("cuda")}), False, id="a GPU by name"
        ),
        pytest.param(
            Call("f", (2,), {"device": DeviceArgument("cpu")}), True, id="the CPU by name"
        ),
        pytest.param(Call(Build("C", device="cuda"), (X,)), False, id="a module moved to a GPU"),
        pytest.param(Call(Build("C", state={}), (X,)), True, id="a module that stays"),
    ],
)
def test_what_only_a_device_shows_is_never_compared_with_mutants(
    call: Call, expected: bool
) -> None:
    assert is_comparable(call) is expected


X = torch.zeros(5, 7, 66)  # B, T, C = nh · hd = 6 · 11
EXPECTED = (5, 6, 7, 11)


def shape_message(
    *shape: int, call: Call | None = None, expected: tuple[int, ...] = EXPECTED
) -> str:
    """The evidence of assert_shape where an attempt returns this shape."""
    tensor = torch.empty(shape, device="meta")
    reply = Reply((Output("tensor", None, "float64", "cpu", shape),))
    with pytest.raises(CheckFailed) as failed:
        assert_shape(tensor, expected)
    sent_call = call or Call("split_heads", (X,), {"n_head": 6})
    text = redact(
        failed.value.evidence, [Exchange("check", sent_call, reply)], failed.value.expected
    )
    return text.partition("yours has ")[2]


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        pytest.param(
            (5, 7, 6, 11), "(5, 7, 6, 11)", id="axes in another order are told as they are"
        ),
        pytest.param((5, 7, 66), "(5, 7, 66)", id="a size of the call is told"),
        pytest.param((5, 1, 7, 3), "(5, 1, 7, 3)", id="so is one that is smaller than the call's"),
        pytest.param(
            (5, 77, 6), "(5, 77, 6)", id="merged axes are told as the number that they make"
        ),
        pytest.param((5, 7, 132), "(5, 7, 132)", id="so are packed layers"),
        pytest.param((0, 12345), "(0, another size)", id="any other size is not told"),
        pytest.param(
            (5, 7, 6, 11, 79), "(5, 7, 6, 11, another size)", id="nor one that is little larger"
        ),
        pytest.param((1 << 39, 0), "(…, 0)", id="nor one that is enormous"),
        pytest.param(
            (1, 2) * 6,
            "(1, 2, 1, 2, 1, 2, …)",
            id="axes beyond two more than the expected are not told",
        ),
    ],
)
def test_of_a_shape(shape: tuple[int, ...], says: str) -> None:
    assert shape_message(*shape) == says


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(Call("f", (1024,)), id="a number"),
        pytest.param(Call("f", (torch.zeros(1024),)), id="a tensor"),
        pytest.param(Call("f", (), {"mask": torch.zeros(1024)}), id="a tensor by name"),
        pytest.param(Call(Build("M", (1024,)), (X,)), id="an argument of a module"),
        pytest.param(
            Call(Build("M", state={"w": torch.zeros(1024, 2)}), (X,)), id="a weight of a module"
        ),
        pytest.param(
            Call("f", (StandIn({"proj": torch.zeros(3, 1024)}, {}), X)), id="a layer of a stand-in"
        ),
    ],
)
def test_a_size_is_told_where_the_call_contains_it_as(call: Call) -> None:
    assert shape_message(5, 1024, call=call) == "(5, 1024)"


@pytest.mark.parametrize(
    ("factor", "says"),
    [
        pytest.param("3.32", "3.317", id="the root of head_dim"),
        pytest.param("0.408", "0.4082", id="one over the root of n_head"),
        pytest.param("66", "66", id="a size"),
        pytest.param("0.798", "0.7977", id="the root of a quotient of sizes"),
        pytest.param("1e+04", "1e+04", id="a power of ten"),
        pytest.param("0.5", "0.5", id="a half"),
        pytest.param("1.253e+45", "", id="a message"),
        pytest.param("7.77", "", id="any other number"),
    ],
)
def test_a_factor_is_told_where_a_mistake_makes_it(factor: str, says: str) -> None:
    exchanges = [
        Exchange(
            "check", Call("attention_scores", (torch.zeros(5, 7, 66), torch.zeros(6, 11))), Reply()
        )
    ]
    digits = 4 if factor.startswith("1.253") else 3
    evidence = Evidence("every score is {} times what it should be", Number(float(factor), digits))
    assert str(evidence) == f"every score is {factor} times what it should be"
    expected = f"every score is {says or 'some number'} times what it should be"
    assert redact(evidence, exchanges) == expected


def test_so_few_factors_are_told_that_a_chosen_one_carries_a_few_bits() -> None:
    call = Call("attention_scores", tuple(range(2, 40)), {"dropout": 0.3})
    exchanges = [Exchange("check", call, Reply())]
    chosen = [Evidence("{} times", Number(10 ** (n / 500), 3)) for n in range(-5000, 5000)]
    assert len({redact(evidence, exchanges) for evidence in chosen}) < 300


@pytest.mark.parametrize(
    ("given", "shape", "more", "counts"),
    [
        pytest.param(X, (1234, 2), (), "… of …", id="not of such a tensor either"),
        pytest.param(
            torch.zeros(3, 23),
            (3, 23),
            (Output("tensor", None, "float64", "cpu", (12345,)),),
            "69 of 69",
            id="of one whose sizes are the call's",
        ),
    ],
)
def test_how_many_values_there_are_is_told(given, shape, more, counts) -> None:
    tensor = torch.full(shape, torch.nan)
    with pytest.raises(CheckFailed) as failed:
        assert_finite(tensor, "the output")
    reply = Reply((Output("tensor", tensor, "float64", "cpu", shape), *more))
    exchanges = [Exchange("check", Call("f", (given,)), reply)]
    expected = f"the output: {counts} values are NaN, the first at (0, 0)"
    assert redact(failed.value.evidence, exchanges) == expected


def test_a_parameters_size_is_withheld_from_the_evidence_of_any_check() -> None:
    entries = {"W_query.weight": Entry((31415, 66), "float64", "cpu")}
    facts = ModuleFacts(
        entries, {}, training=False, changed=False, unloaded=(), attributes={"block_size": 27182}
    )
    exchange = Exchange("check", Call(Build("M", (66,)), (X,)), Reply(modules=(facts,)))
    evidence = Evidence(
        "{} should have shape {}; yours has {}, block_size is {}",
        "W_query.weight",
        (66, 66),
        (31415, 66),
        27182,
    )
    assert redact(evidence, [exchange]) == (
        "W_query.weight should have shape (66, 66); yours has (another size, 66), "
        "block_size is another size"
    )


SHAPES = ((1, 2, 1, 2, 1, 2, 1), (1, 12345))


@pytest.mark.parametrize(
    ("value", "says"),
    [
        pytest.param((1, 2, 1, 2, 1), "(1, 2, 1, 2, 1)", id="a shape of few axes"),
        pytest.param([1, 2, 1, 2, 1, 2, 1], "[1, 2, 1, 2, 1, …]", id="a long list"),
        pytest.param([1, 12345], "[1, another size]", id="a size in a list"),
        pytest.param(Listed([1, 12345], " and "), "1 and another size", id="a size in a series"),
        pytest.param(Number(4 / 3), "1.333", id="a scale of dropout"),
        pytest.param(Number(1.338), "some number", id="one that is near"),
        pytest.param(Number(4 / 3, 3), "1.333", id="with as many digits as it has"),
        pytest.param(0.25, "0.25", id="a number of the call"),
        pytest.param(Percent(0.139, 1), "13.9%", id="a percentage"),
        pytest.param(Percent(12345.678, 1), "some number", id="a great percentage"),
        pytest.param(Percent(math.nan), "some number", id="no percentage"),
        pytest.param(True, "True", id="a truth value"),
        pytest.param(None, "None", id="nothing"),
        pytest.param("other heads", "other heads", id="a text without digits"),
        pytest.param(SafeText("float32"), "float32", id="the name of a dtype"),
        pytest.param("M", "M", id="the name of the class"),
        pytest.param("args.0", "args.0", id="the name of an argument"),
        pytest.param("12345 of them", REDACTED_TEXT, id="a text with digits"),
        pytest.param(Evidence("row {}", 12345), "row another size", id="evidence in evidence"),
    ],
)
def test_of_a_value_beside_a_shape_of_many_axes(value: Value, says: str) -> None:
    call = Call(Build("M", (66,), {"dropout": 0.25}), (X,))
    exchanges = [Exchange("check", call, Reply(operations=Operations(fused=False, shapes=SHAPES)))]
    assert redact(Evidence("it is {}.", value), exchanges) == f"it is {says}."


CHECK = """
import pytest
from manyheads.checks import CheckFailed

def fail(number):
    raise CheckFailed(SENTENCE)
"""


@pytest.mark.parametrize(
    ("sentence", "says"),
    [
        pytest.param('"the weights sum to 31"', "the weights sum to 31", id="a sentence"),
        pytest.param(
            '"the weights sum to 31, "\n        "and not to 1"',
            "the weights sum to 31, and not to 1",
            id="a sentence on two lines",
        ),
        pytest.param('f"row {number} of 31"', REDACTED_TEXT, id="a sentence with a number"),
        pytest.param('"row %s of 31" % number', REDACTED_TEXT, id="a text that is formatted"),
        pytest.param('f"{str(True)} weights"', "True weights", id="one without digits"),
    ],
)
def test_a_text_with_digits_is_told_only_if_a_check_writes_it_out(
    tmp_path, monkeypatch, sentence: str, says: str
) -> None:
    path = tmp_path / "grader" / "checks" / "test_texts.py"
    path.parent.mkdir(parents=True)
    path.write_text(CHECK.replace("SENTENCE", sentence), encoding="utf-8")
    module = types.ModuleType("checks_with_texts")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), vars(module))
    with pytest.raises(CheckFailed) as failed:
        module.fail(12345)
    assert redact(failed.value.evidence, []) == says


@pytest.mark.parametrize(
    ("value", "says"),
    [
        pytest.param(12345, "another size", id="a size that the attempt returned"),
        pytest.param(54321, "…", id="a larger number than that, which it may be made from"),
        pytest.param(-12345, "another size", id="minus such a size"),
        pytest.param(-54321, "…", id="minus a larger number"),
        pytest.param(66, "66", id="a size of the call"),
        pytest.param((3, 12345), "(3, another size)", id="a shape"),
        pytest.param((1, 2) * 4, "(1, 2, 1, 2, 1, …)", id="a shape of many axes"),
        pytest.param(Number(1.2345e67), "some number", id="a factor"),
        pytest.param(Number(-0.137), "some number", id="a negative factor"),
        pytest.param(Number(float("inf")), "some number", id="an infinite factor"),
        pytest.param(Number(0.0), "0", id="zero"),
        pytest.param(Number(-0.5), "-0.5", id="minus a half"),
        pytest.param(Evidence("row {}", 12345), "row another size", id="evidence with one"),
    ],
)
def test_of_a_value(value: Value, says: str) -> None:
    exchanges = [Exchange("check", Call("f", (X,)), Reply((Output("tensor", shape=(12345,)),)))]
    evidence = Evidence("of 31415 and 2.718, it is {}.", value)
    assert redact(evidence, exchanges) == f"of 31415 and 2.718, it is {says}."


def test_numbers_of_the_check_itself_stay_where_the_attempt_returns_what_it_should() -> None:
    reply = Reply((Output("tensor", None, "float64", "cpu", EXPECTED),))
    evidence = Evidence(
        "{} of {} values differ, by {} of the largest; T = {}, channels {}",
        2310,
        2310,
        Percent(0.139, 1),
        4096,
        [0, 1, 2, 3, 4, 5, 6],
    )
    exchanges = [Exchange("check", Call("f", (X,)), reply)]
    assert redact(evidence, exchanges, EXPECTED) == str(evidence)
