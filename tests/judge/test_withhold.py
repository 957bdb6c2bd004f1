"""What evidence tells of an attempt's sizes: mistakes as they are, messages not."""

import pytest
import torch

from manyheads.box.worker.answers import Entry, ModuleFacts, Output, Reply
from manyheads.box.worker.messages import Build, Call, StandIn
from manyheads.checks.asserts import assert_finite, assert_shape
from manyheads.checks.outcome import CheckFailed
from manyheads.checks.transcript import Exchange
from manyheads.judge.withhold import withhold

X = torch.zeros(5, 7, 66)  # B, T, C = nh · hd = 6 · 11
EXPECTED = (5, 6, 7, 11)


def told(*shape: int, call: Call | None = None, expected: tuple[int, ...] = EXPECTED) -> str:
    """The evidence of assert_shape where an attempt returns this shape."""
    tensor = torch.empty(shape, device="meta")
    reply = Reply((Output("tensor", None, "float64", "cpu", shape),))
    with pytest.raises(CheckFailed) as failed:
        assert_shape(tensor, expected)
    given = call or Call("split_heads", (X,), {"n_head": 6})
    text = withhold(str(failed.value), [Exchange("check", given, reply)], failed.value.expected)
    return text.partition("yours has ")[2]


@pytest.mark.parametrize(("shape", "says"), [
    pytest.param((5, 7, 6, 11), "(5, 7, 6, 11)", id="axes in another order are told as they are"),
    pytest.param((5, 7, 66), "(5, 7, 66)", id="a size of the call is told"),
    pytest.param((5, 1, 7, 3), "(5, 1, 7, 3)", id="so is one that is smaller than the call's"),
    pytest.param((5, 77, 6), "(5, 77, 6)", id="merged axes are told as the number that they make"),
    pytest.param((5, 7, 132), "(5, 7, 132)", id="so are packed layers"),
    pytest.param((0, 12345), "(0, another size)", id="any other size is not told"),
    pytest.param((5, 7, 6, 11, 79), "(5, 7, 6, 11, another size)", id="nor one that is little larger"),
    pytest.param((1 << 39, 0), "(…, 0)", id="nor one that is enormous"),
    pytest.param((1, 2) * 6, "(1, 2, 1, 2, 1, 2, …)", id="axes beyond two more than the expected are not told"),
])  # fmt: skip
def test_of_a_shape(shape: tuple[int, ...], says: str) -> None:
    assert told(*shape) == says


@pytest.mark.parametrize("call", [
    pytest.param(Call("f", (1024,)), id="a number"),
    pytest.param(Call("f", (torch.zeros(1024),)), id="a tensor"),
    pytest.param(Call("f", (), {"mask": torch.zeros(1024)}), id="a tensor by name"),
    pytest.param(Call(Build("M", (1024,)), (X,)), id="an argument of a module"),
    pytest.param(Call(Build("M", state={"w": torch.zeros(1024, 2)}), (X,)), id="a weight of a module"),
    pytest.param(Call("f", (StandIn({"proj": torch.zeros(3, 1024)}, {}), X)), id="a layer of a stand-in"),
])  # fmt: skip
def test_a_size_is_told_where_the_call_contains_it_as(call: Call) -> None:
    assert told(5, 1024, call=call) == "(5, 1024)"


@pytest.mark.parametrize(("factor", "says"), [
    pytest.param("3.32", "3.317", id="the root of head_dim"),
    pytest.param("0.408", "0.4082", id="one over the root of n_head"),
    pytest.param("66", "66", id="a size"),
    pytest.param("0.798", "0.7977", id="the root of a quotient of sizes"),
    pytest.param("1e+04", "1e+04", id="a power of ten"),
    pytest.param("0.5", "0.5", id="a half"),
    pytest.param("1.253e+45", "", id="a message"),
    pytest.param("7.77", "", id="any other number"),
])  # fmt: skip
def test_a_factor_is_told_where_a_mistake_makes_it(factor: str, says: str) -> None:
    asked = [Exchange("check", Call("attention_scores", (torch.zeros(5, 7, 66), torch.zeros(6, 11))), Reply())]
    told = withhold(f"every score is {factor} times what it should be", asked)
    assert told == f"every score is {f'{says} times' if says else 'another multiple of'} what it should be"


def test_so_few_factors_are_told_that_a_chosen_one_carries_a_few_bits() -> None:
    asked = [Exchange("check", Call("attention_scores", tuple(range(2, 40))), Reply())]
    chosen = (f"{10 ** (n / 5000):.3g} times" for n in range(-50_000, 50_000))
    assert len({withhold(each, asked) for each in chosen}) < 300


@pytest.mark.parametrize(("given", "shape", "more", "counts"), [
    pytest.param(X, (1234, 2), (), "… of …", id="not of such a tensor either"),
    pytest.param(torch.zeros(3, 23), (3, 23), (Output("tensor", None, "float64", "cpu", (12345,)),), "69 of 69",
        id="of one whose sizes are the call's"),
])  # fmt: skip
def test_how_many_values_there_are_is_told(given, shape, more, counts) -> None:
    tensor = torch.full(shape, torch.nan)
    with pytest.raises(CheckFailed) as failed:
        assert_finite(tensor, "the output")
    reply = Reply((Output("tensor", tensor, "float64", "cpu", shape), *more))
    text = withhold(str(failed.value), [Exchange("check", Call("f", (given,)), reply)])
    assert text == f"the output: {counts} values are NaN, the first at (0, 0)"


def test_a_parameters_size_is_withheld_from_the_words_of_any_check() -> None:
    entries = {"W_query.weight": Entry((31415, 66), "float64", "cpu")}
    facts = ModuleFacts(entries, {}, training=False, changed=False, unloaded=(), attributes={"block_size": 27182})
    exchange = Exchange("check", Call(Build("M", (66,)), (X,)), Reply(modules=(facts,)))
    text = withhold("W_query.weight should have shape (66, 66); yours has (31415, 66), block_size is 27182", [exchange])
    assert text == "W_query.weight should have shape (66, 66); yours has (another size, 66), block_size is another size"


def test_numbers_of_the_check_itself_stay_where_the_attempt_returns_what_it_should() -> None:
    reply = Reply((Output("tensor", None, "float64", "cpu", EXPECTED),))
    evidence = "2310 of 2310 values differ, by 13.9% of the largest; T = 4096, 1e-05, channels [0, 1, 2, 3, 4, 5, 6]"
    assert withhold(evidence, [Exchange("check", Call("f", (X,)), reply)], EXPECTED) == evidence
