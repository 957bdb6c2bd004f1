"""Points of form are for answers that say something: not for zeros, noise, NaN, or what was
given.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from manyheads.box.worker.messages import Build, Call
from manyheads.box.worker.result_form import Form
from manyheads.checks.hidden_check import CheckOutcome
from manyheads.checks.runner import Exchange, LocalRecordingRunner, LocalRunner
from manyheads.judge.collect_checks import CheckRun
from manyheads.judge.missing_answers_and_wrong_types import (
    AsksNothingError,
    kinds_of,
    missing_reply,
)
from manyheads.judge.run_hidden_checks import HiddenChecks

CHECKS = '''
import torch
from manyheads.checks import Layer, assert_matches, check


@check(points=1, layer=Layer.SHAPE)
def test_answers(attempt, draw):
    """answers"""
    for name, args in ASKED.items():
        for each in args(draw):
            attempt.call(name, *each).must_return()
'''
OF_NUMBERS = 'ASKED = {"f": lambda draw: [(draw(5, 1),), (draw(5, 40),)]}\n'
OF_ONES = 'ASKED = {"f": lambda draw: [(torch.ones(5, 7),), (draw(5, 7),)]}\n'
OF_SIZES = 'ASKED = {"mask": lambda draw: [(1,), (30,)]}\n'
OF_COUNTS = 'ASKED = {"count": lambda draw: [(2, 3), (4, 5)]}\n'
OF_TOKENS = 'ASKED = {"f": lambda draw: [(draw(9, 40, scale=0.2),)]}\n'
BOTH = 'ASKED = {"f": lambda draw: [(draw(5, 7),)], "g": lambda draw: [(draw(5, 7),)]}\n'

Judged = Callable[..., CheckOutcome]


@pytest.fixture
def check_outcome(tmp_path: Path) -> Judged:
    """What becomes of the check that asks for form alone."""

    def outcome(
        check_text: str, reference: dict[str, object], names: dict[str, object], seed: int = 0
    ) -> CheckOutcome:
        file = tmp_path / "test_form.py"
        file.write_text(CHECKS + check_text)
        subject = LocalRecordingRunner(names)
        (result,) = HiddenChecks([file]).run(
            file, CheckRun(subject, LocalRunner(reference), b"secret", ("f", str(seed)))
        )
        assert all(exchange.check == "answers" for exchange in subject.transcript), (
            "what is asked besides is not kept"
        )
        return result

    return outcome


def cumulate(x: torch.Tensor) -> torch.Tensor:
    """Each number with those before it; of a single column, the argument itself."""
    return x.cumsum(-1)


def lower(T: int) -> torch.Tensor:
    return torch.ones(T, T).tril().bool()


def noise(x: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
    return torch.randn(x.shape, generator=generator, dtype=x.dtype)


def one_nan(x: torch.Tensor) -> torch.Tensor:
    y = x.cumsum(-1) + 1
    y[0, 0] = float("nan")
    return y


def ever_other(x: torch.Tensor) -> torch.Tensor:
    generator = torch.Generator()
    generator.seed()
    return noise(x, generator)


SAME, CHANCE = (
    "f gives the same answer, whatever it is given",
    "f gives another answer each time, whatever it is given",
)
GIVEN = "f gives back numbers of the first argument, and has computed nothing"


@pytest.mark.parametrize(
    ("f", "says"),
    [
        pytest.param(
            torch.zeros_like, "f gives 0 in every place, whatever it is given", id="zeros"
        ),
        pytest.param(
            lambda x: x * 0 + 3, "f gives 3 in every place, whatever it is given", id="a constant"
        ),
        pytest.param(
            lambda x: x * 0 + 1.2345,
            "f gives some number in every place, whatever it is given",
            id="a constant that may be a message",
        ),
        pytest.param(lambda x: torch.arange(x.numel()).view(x.shape).to(x), SAME, id="a ramp"),
        pytest.param(lambda x: torch.eye(*x.shape).to(x) + 1, SAME, id="a pattern"),
        pytest.param(
            lambda x: torch.eye(*x.shape).to(x) + x.sum() * 1e-9,
            SAME,
            id="what rounding would hide",
        ),
        pytest.param(noise, SAME, id="torch's noise, seeded as every call is"),
        pytest.param(ever_other, CHANCE, id="noise of its own"),
        pytest.param(lambda x: x, "f gives back the first argument, unchanged", id="the argument"),
        pytest.param(
            lambda x: x.float(),
            "f gives back the first argument, unchanged",
            id="the argument in float32",
        ),
        pytest.param(lambda x: x.mT, GIVEN, id="the argument, transposed"),
        pytest.param(lambda x: x.flatten()[: x.numel() // 2], GIVEN, id="a part of the argument"),
        pytest.param(
            lambda x: x / 0 * 0, "the output: 5 of 5 values are NaN, the first at (0, 0)", id="NaN"
        ),
        pytest.param(
            one_nan, "the output: 1 of 5 values are NaN, the first at (0, 0)", id="one NaN"
        ),
        pytest.param(
            lambda x: x / 0,
            "the output: 5 of 5 values are infinite, the first at (0, 0)",
            id="infinity",
        ),
    ],
)
def test_an_answer_that_says_nothing_does_not_pass(
    check_outcome: Judged, f: object, says: str
) -> None:
    result = check_outcome(OF_NUMBERS, {"f": cumulate}, {"f": f})
    assert (result.outcome, result.evidence, result.fault) == ("failed", says, "")


@pytest.mark.parametrize(
    "f",
    [
        pytest.param(cumulate, id="right"),
        pytest.param(lambda x: x.cumsum(-1).float(), id="right in float32"),
        pytest.param(lambda x: x.cumsum(-1) * 3, id="a wrong scale"),
        pytest.param(lambda x: x.cumsum(0), id="the wrong axis"),
        pytest.param(lambda x: x.mean().expand(x.shape), id="one mean of all, in every place"),
        pytest.param(lambda x: x.sum(-1), id="another shape"),
        pytest.param(
            lambda x: torch.nn.functional.dropout(x.cumsum(-1), 0.5), id="dropout that is always on"
        ),
    ],
)
def test_a_wrong_answer_keeps_its_points_of_form(check_outcome: Judged, f: object) -> None:
    assert check_outcome(OF_NUMBERS, {"f": cumulate}, {"f": f}).outcome == "passed"


def test_a_copy_of_ones_is_a_copy(check_outcome: Judged) -> None:
    for copy in (lambda x: x, lambda x: x.flatten()[:3]):
        assert check_outcome(OF_ONES, {"f": cumulate}, {"f": copy}).outcome == "failed"


def test_ones_are_no_right_answer_where_ones_are_moved(check_outcome: Judged) -> None:
    flat = {"f": lambda x: x.T.flatten()}
    assert check_outcome(OF_ONES, flat, {"f": lambda x: torch.ones(x.numel())}).outcome == "failed"
    assert check_outcome(OF_ONES, flat, flat).outcome == "passed"


def test_an_answer_that_goes_by_what_came_before_is_no_noise(check_outcome: Judged) -> None:
    means: list[torch.Tensor] = []

    def remembers(x: torch.Tensor) -> torch.Tensor:
        means.append(x.mean())
        return x.cumsum(-1) + 0.1 * torch.stack(means).sum()

    assert check_outcome(OF_NUMBERS, {"f": cumulate}, {"f": remembers}).outcome == "passed"


@pytest.mark.parametrize(
    "right",
    [
        pytest.param(
            lambda x: x.view(40, 5) if x.numel() == 200 else x, id="numbers in other places"
        ),
        pytest.param(lambda x: x[:, : 1 + x.shape[1] // 2], id="some of them"),
    ],
)
def test_where_the_work_is_to_move_numbers_they_may_be_moved_wrongly(
    check_outcome: Judged, right: object
) -> None:
    assert (
        check_outcome(OF_NUMBERS, {"f": right}, {"f": lambda x: x.flip(-1)[:, 1:]}).outcome
        == "passed"
    )
    assert check_outcome(OF_NUMBERS, {"f": right}, {"f": lambda x: x}).outcome == "failed"


def test_a_right_answer_may_be_what_was_given_or_constant(check_outcome: Judged) -> None:
    """The reference's is no more: then nothing is known against whoever gives it."""
    for reference in (lambda x: x, torch.zeros_like, lambda x: x * float("nan")):
        assert check_outcome(OF_NUMBERS, {"f": reference}, {"f": reference}).outcome == "passed"


@pytest.mark.parametrize(
    ("mask", "outcome"),
    [
        pytest.param(lower, "passed", id="right"),
        pytest.param(lambda T: ~lower(T), "passed", id="the opposite"),
        pytest.param(lambda T: lower(T).tril(-1), "passed", id="without the diagonal"),
        pytest.param(
            lambda T: torch.where(lower(T), 0.0, float("-inf")), "passed", id="a mask to be added"
        ),
        pytest.param(lambda T: torch.ones(T, T).bool(), "failed", id="ones"),
        pytest.param(lambda T: torch.eye(T).bool(), "failed", id="the identity"),
        pytest.param(lambda T: torch.arange(T * T).view(T, T) % 2 == 0, "failed", id="a pattern"),
        pytest.param(lambda T: torch.rand(T, T) > 0.5, "failed", id="noise"),
    ],
)
def test_what_is_given_sizes_alone_answers_like_the_right_answer_or_its_opposite(
    check_outcome, mask, outcome
):
    assert check_outcome(OF_SIZES, {"mask": lower}, {"mask": mask}).outcome == outcome


@pytest.mark.parametrize(
    ("count", "outcome"),
    [
        pytest.param(lambda a, b: a * b, "passed", id="right"),
        pytest.param(lambda a, b: a + b, "passed", id="wrong"),
        pytest.param(lambda a, b: 6, "failed", id="right for one input alone"),
        pytest.param(lambda a, b: torch.rand(()).item(), "failed", id="noise"),
    ],
)
def test_a_count_changes_with_what_is_counted(
    check_outcome: Judged, count: object, outcome: str
) -> None:
    assert (
        check_outcome(OF_COUNTS, {"count": lambda a, b: a * b}, {"count": count}).outcome == outcome
    )


def attend(x: torch.Tensor) -> torch.Tensor:
    return (x @ x.mT).softmax(-1) @ x


class Thrice:
    """Zeros, and an exception where an input comes more often than the checks ask it."""

    def __init__(self, most: int) -> None:
        self.most, self.seen = most, list[bytes]()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.append(x.numpy().tobytes())
        if self.seen.count(self.seen[-1]) > self.most:
            raise RuntimeError
        return torch.zeros_like(x)


def on_meta(x: torch.Tensor) -> torch.Tensor:
    if x.is_meta:
        return x
    raise RuntimeError


COMPARES = (
    "f compares nothing: each number that it is given adds the same to its answer, whatever "
    "the others are"
)


@pytest.mark.parametrize(
    ("f", "says"),
    [
        pytest.param(
            lambda x: x.mean(-2, keepdim=True).expand(x.shape), COMPARES, id="the mean of all"
        ),
        pytest.param(
            lambda x: x.cumsum(-2) / torch.arange(1, 1 + len(x)).view(-1, 1),
            COMPARES,
            id="running means",
        ),
        pytest.param(
            lambda x: 2 * x @ torch.ones(40, 40).tril().to(x), COMPARES, id="values handed through"
        ),
        pytest.param(lambda x: x[:1].expand(x.shape), GIVEN, id="the first value"),
        pytest.param(
            Thrice(1), "raised RuntimeError", id="zeros, which end where an input comes again"
        ),
        pytest.param(
            Thrice(2), "f gives 0 in every place, whatever it is given", id="zeros, a little later"
        ),
        pytest.param(attend, "", id="right"),
        pytest.param(lambda x: (x @ x.mT) @ x, "", id="no softmax"),
        pytest.param(lambda x: x[(x @ x.flip(-1).mT).argmax(-1)], "", id="the best alone"),
    ],
)
def test_where_numbers_are_compared_what_compares_nothing_says_nothing(
    check_outcome: Judged, f: object, says: str
) -> None:
    for seed in range(5):
        result = check_outcome(OF_TOKENS, {"f": attend}, {"f": f}, seed)
        assert (result.outcome == "passed", result.evidence, result.fault) == (not says, says, "")


def test_what_answers_on_the_meta_device_alone_says_nothing(check_outcome: Judged) -> None:
    check_text = OF_TOKENS.replace(
        "[(draw(9, 40, scale=0.2),)", "[(torch.empty(9, 40, device='meta'),), (draw(9, 40),)"
    )
    result = check_outcome(
        check_text.replace("must_return()", "raised"), {"f": attend}, {"f": on_meta}
    )
    assert (result.outcome, result.fault) == ("error", "")


CONDITION = """
from manyheads.checks import Condition


def weighs(attempt, draw):
    tokens = draw(9, 40, scale=0.2)
    tokens[:, -1] = 0.0
    texts = []
    for order in (range(9), [0, 1, 3, 2, *range(4, 9)]):
        for raised in (None, 2, 3):
            texts.append(tokens[list(order)])
            if raised is not None:
                texts[-1][raised, -1] = 1.0
    yield Condition("weighing", attempt.call("f", torch.stack(texts)), "nothing is weighed")


PRECONDITIONS = {"f": weighs}
"""


def test_what_a_course_demands_of_a_function_counts_for_every_check_that_asks_it(
    check_outcome: Judged,
) -> None:
    check_text = f"{OF_TOKENS}{CONDITION}"
    result = check_outcome(
        check_text, {"f": attend}, {"f": lambda x: x.cumsum(-2).sin() + x.mean(-2, keepdim=True)}
    )
    assert (result.outcome, result.evidence, result.fault) == ("failed", "nothing is weighed", "")
    assert (
        check_outcome(
            check_text, {"f": attend}, {"f": lambda x: (x @ x.mT / 2).softmax(-1) @ x}
        ).outcome
        == "passed"
    )


def test_the_function_that_says_nothing_is_named_where_a_check_asks_several(
    check_outcome: Judged,
) -> None:
    result = check_outcome(
        BOTH, {"f": cumulate, "g": cumulate}, {"f": cumulate, "g": torch.zeros_like}
    )
    assert result.evidence == "g gives 0 in every place, whatever it is given"


def test_whoever_is_right_is_asked_nothing_more(check_outcome: Judged) -> None:
    inputs = []

    def count_inputs(x: torch.Tensor) -> torch.Tensor:
        inputs.append(x)
        return cumulate(x)

    check_outcome(OF_NUMBERS, {"f": cumulate}, {"f": count_inputs})
    assert len(inputs) == 2


class Module(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, None]:
        return x, None


def test_a_call_that_only_builds_says_nothing_of_the_parts() -> None:
    build, pair = Build("Module"), Form("tuple", ("y", "rest"), (Form(), Form()))
    calls = [Call(build, only_build=True), Call(build, (torch.ones(2),), returns=pair)]
    assert kinds_of(calls, LocalRunner({"Module": Module})) == (
        frozenset({"tensor"}),
        frozenset({"NoneType"}),
    )


def test_a_call_that_the_reference_refuses_is_a_fault_of_the_check_only_where_nobody_answers() -> (
    None
):
    def refuse(x: torch.Tensor) -> torch.Tensor:
        raise ValueError(len(x))

    reference, call = LocalRunner({"f": refuse}), Call("f", (torch.ones(2),))
    # a size of the attempt's own makes a call like this one
    reply = LocalRunner({"f": lambda x: x}).execute(call)
    assert missing_reply([Exchange("check", call, reply)], reference) is None
    why = missing_reply([Exchange("check", call, reference.execute(call))], reference)
    assert isinstance(why, AsksNothingError)


def test_a_number_is_no_answer_where_a_list_is_expected() -> None:
    reference, call = LocalRunner({"f": lambda x: [1.0, 2.0]}), Call("f", (torch.ones(2),))
    for answer, is_accepted in ([3.0, 4.0], True), (3.0, False):
        reply = LocalRunner({"f": lambda x, answer=answer: answer}).execute(call)
        why = missing_reply([Exchange("check", call, reply)], reference)
        assert (why is None) == is_accepted
