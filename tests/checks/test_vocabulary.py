"""The functions that checks are written with: calls, answers, origins of numbers, contracts."""

import re

import pytest
import torch
from torch import nn

from manyheads.box.worker.result_form import Form
from manyheads.checks import (
    Layer,
    Sizes,
    assert_differs,
    assert_moved_from,
    assert_tensor,
    changed_positions,
    check,
    expect,
    function_contract,
    module_contract,
)
from manyheads.checks.hidden_check import AttemptRaised, CheckFailed, Draw, Mark
from manyheads.checks.runner import Implementation, LocalRunner


class Scale(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))

    def forward(self, x):
        return x * self.weight


def file_with(**functions):
    """Return an attempt that defines these functions and classes."""
    return Implementation(LocalRunner(functions))


X = torch.arange(1.0, 7.0, dtype=torch.float64).view(2, 3)
FILE = file_with(double=lambda x: 2 * x, same=lambda x: x, Scale=Scale)


def test_functions_and_classes_of_an_attempt_are_attributes():
    answer = FILE.with_options(cotangent=X).double(X)
    assert torch.equal(answer.output, 2 * X)
    assert torch.equal(answer.gradient("args.0"), 2 * X)
    weight = torch.tensor([1.0, 2.0, 3.0])
    assert torch.equal(FILE.Scale(3).with_parameters({"weight": weight})(X).output, X * weight)
    assert FILE.Scale(n=3).build_only().module.parameters["weight"].shape == (3,)


@pytest.mark.parametrize("name", ["__wrapped__", "_pytestfixturefunction", "__deepcopy__"])
def test_private_names_are_not_attributes(name):
    assert not hasattr(FILE, name)


@pytest.mark.parametrize(
    ("use", "value"),
    [
        pytest.param(lambda a: a + X, 3 * X, id="a sum"),
        pytest.param(lambda a: 1 - a, 1 - 2 * X, id="a number before it"),
        pytest.param(lambda a: X @ a.mT, X @ (2 * X).mT, id="a product of matrices"),
        pytest.param(lambda a: -a, -2 * X, id="a sign"),
        pytest.param(lambda a: a == 2 * X, X > 0, id="equality"),
        pytest.param(lambda a: a > 4, 2 * X > 4, id="a comparison"),
        pytest.param(lambda a: a[:, -1], 2 * X[:, -1], id="an index"),
        pytest.param(lambda a: torch.where(X > 2, a, 0.0), 2 * X * (X > 2), id="torch.where"),
        pytest.param(lambda a: torch.cat([a, X]), torch.cat([2 * X, X]), id="answers in a list"),
        pytest.param(lambda a: FILE.double(a).output, 4 * X, id="an argument"),
    ],
)
def test_an_answer_is_used_like_its_tensor(use, value):
    assert torch.equal(use(FILE.double(X)), value)
    with pytest.raises(AttemptRaised) as caught:
        use(file_with(broken=lambda x: x.nothing).broken(X))
    assert caught.value.raised.type == "AttributeError"


def test_an_answer_has_only_the_attributes_of_a_tensor():
    answer = FILE.double(X)
    assert (answer.shape, answer.dtype) == ((2, 3), "float64")
    with pytest.raises(AttributeError, match="an answer has no sums"):
        answer.sums  # noqa: B018


@pytest.mark.parametrize("use", [assert_tensor, lambda answer: answer + 1])
def test_using_an_answer_of_another_type_names_its_type(use):
    with pytest.raises(CheckFailed, match="a tensor was expected; yours returned a dict"):
        use(file_with(f=lambda x: {1: 2}).f(X))


def test_parts_of_an_answer_are_answers():
    pair = Form("tuple", ("once", "twice"), (Form(), Form()))
    file = Implementation(LocalRunner({"f": lambda x: (x, 2 * x)}), forms={"f": pair})
    x, doubled = file.f(X)
    assert torch.equal(x + doubled, 3 * X)
    assert torch.equal(file.f(X)["twice"][0], 2 * X[0])


def test_an_answer_equal_to_a_known_mistake_fails():
    assert_differs(FILE.double(X), X, "nothing is doubled")
    with pytest.raises(CheckFailed, match="nothing is doubled") as caught:
        assert_differs(FILE.same(X), X, "nothing is doubled", "not_doubled")
    assert caught.value.suspect == "not_doubled"


INPUT = Draw(7)(2, 4, 6)  # random numbers of shape (B, T, C)
SPLIT = INPUT.unflatten(-1, (3, 2)).transpose(1, 2)  # split into heads: (B, nh, T, hd)
AXES, HEADS = ("sequence", "position", "channel"), ("sequence", "head", "position", "number")
FIRST_OF_HEAD_0 = "head 0, position 0 should hold channels 0…1 of position 0 of sequence 0; yours "


@pytest.mark.parametrize(
    ("actual", "evidence"),
    [
        pytest.param(
            INPUT.view(2, 3, 4, 2),
            "head 0, position 1 should hold channels 0…1 of position 1 of sequence 0; "
            "yours holds channels 2…3 of position 0 of sequence 0",
            id="a view",
        ),
        pytest.param(
            2 * SPLIT,
            FIRST_OF_HEAD_0 + "holds numbers that stand nowhere in the input",
            id="other numbers",
        ),
        pytest.param(
            INPUT.unflatten(-1, (2, 3)).permute(0, 3, 1, 2),
            FIRST_OF_HEAD_0 + "holds channels 0, 3 of position 0 of sequence 0",
            id="every third channel",
        ),
    ],
)
def test_the_evidence_names_where_a_misplaced_number_comes_from(actual, evidence):
    with pytest.raises(CheckFailed, match=f"^{re.escape(evidence)}$"):
        assert_moved_from(INPUT, FILE.same(actual), SPLIT, AXES, ("", *HEADS[1:]))


def test_the_evidence_names_the_indices_of_a_misplaced_part():
    merged = SPLIT.transpose(1, 2).flatten(2)
    swapped = torch.cat([SPLIT[:, 0], SPLIT[:, 2], SPLIT[:, 1]], dim=-1)
    evidence = (
        "position 0, channels 2…3 should hold numbers 0…1 of position 0 of head 1 of sequence 0; "
        "yours holds numbers 0…1 of position 0 of head 2 of sequence 0"
    )
    with pytest.raises(CheckFailed, match=f"^{re.escape(evidence)}$"):
        assert_moved_from(SPLIT, FILE.same(swapped), merged, HEADS, ("", *AXES[1:]))


def test_moved_numbers_may_be_in_float32():
    assert_moved_from(INPUT, FILE.same(SPLIT.float()), SPLIT, AXES, ("", *HEADS[1:]))


def test_changed_positions_are_listed():
    edited = INPUT.clone()
    edited[1, 2, 3] += 1
    answer, after = (FILE.same(tensor.cumsum(1)) for tensor in (INPUT, edited))
    assert changed_positions(answer, after, axes=(0, 1)) == [(1, 2), (1, 3)]
    assert changed_positions(answer, after, axes=1) == [2, 3]
    assert changed_positions(answer, after, axes=-1) == [3]
    assert changed_positions(INPUT, INPUT + 1e-9, axes=1, tolerance=1e-5) == []
    assert changed_positions(INPUT, INPUT + 1e-9, axes=1) == [0, 1, 2, 3]
    with pytest.raises(CheckFailed, match="should have shape"):
        changed_positions(INPUT, INPUT[0], axes=1)


def attention_weights(q, k):
    return torch.softmax(q @ k.mT, -1)


def arguments(draw):
    """Return the arguments of `f` for the checks of a contract."""
    return {"f": {"q": draw(3, 5), "k": draw(4, 5)}}


@pytest.mark.parametrize(
    ("name", "fault", "evidence", "suspect"),
    [
        (
            "gradients",
            lambda q, k: attention_weights(q, k.detach()),
            "f: no gradient reaches k, though the output depends on it",
            "gradient_cut",
        ),
        (
            "leaves_its_arguments",
            lambda q, k: attention_weights(q.mul_(1.0 + 1e-3), k),
            "the first argument changed",
            "input_mutated",
        ),
        (
            "dtype",
            lambda q, k: attention_weights(q.float(), k.float()),
            "f: float64 in should give float64 out; yours gives float32",
            "hard_coded_dtype",
        ),
        (
            "device",
            lambda q, k: attention_weights(q, k) + torch.zeros(3, 4),
            "f: tensors on two devices meet",
            "hard_coded_device",
        ),
        (
            "stays_on_the_device",
            lambda q, k: (
                attention_weights(q, k).cpu() if q.device.type == "cpu" else torch.zeros(3, 4)
            ),
            "f gives a tensor on cpu, whatever the device of its arguments",
            "hard_coded_device",
        ),
    ],
)
def test_a_contract_accepts_a_correct_function_and_names_a_fault(name, fault, evidence, suspect):
    (requirement,) = function_contract(arguments, **{name: ""})
    reference = file_with(f=attention_weights)
    requirement(reference, reference, Draw(1))
    with pytest.raises(CheckFailed, match=re.escape(evidence)) as caught:
        requirement(file_with(f=fault), reference, Draw(1))
    assert caught.value.suspect == suspect


def test_a_contract_has_four_checks_by_default():
    checks = function_contract(arguments, points=0.5)
    names = [check.__name__.removeprefix("test_") for check in checks]
    assert names == ["gradients", "leaves_its_arguments", "dtype", "device"]
    assert {check.pytestmark[0].args[0].points for check in checks} == {0.5}


class Norm:
    """A contract of a module: each method with @check becomes a check."""

    scale = 2.0

    @check(points=0.25, layer="hygiene", hint="Which device is x on?")
    def moves(self, attempt, reference, draw):
        """works where .to(device) has put it"""
        expect(attempt.f(self.scale) == 0, "it stays")


@pytest.mark.parametrize(
    ("hint_or_pair", "title", "hint"),  # hint_or_pair: another hint, or another title and hint
    [
        ("", "works where .to(device) has put it", "Which device is x on?"),
        ("A buffer?", "works where .to(device) has put it", "A buffer?"),
        (("moves", ""), "moves", ""),
    ],
)
def test_each_method_of_a_module_contract_becomes_a_check(hint_or_pair, title, hint):
    (moves,) = module_contract(Norm(), moves=hint_or_pair)
    assert (moves.__name__, moves.__doc__) == ("test_moves", title)
    assert moves.pytestmark[0].args[0] == Mark(0.25, Layer.HYGIENE, hint)
    with pytest.raises(CheckFailed, match="it stays"):
        moves(file_with(f=torch.tensor), None, Draw(1))


def test_sizes_that_follow_from_others_change_with_them():
    sizes = Sizes(nh=[2, 3], hd=[4, 5, 6], C=lambda s, _: s.nh * s.hd)
    s = sizes(Draw(1))
    assert s.C == s.nh * s.hd
    assert sizes.replace(s, nh=1).C == s.hd
