"""A check that needs no right numbers gives no points for zeros, noise, NaN or a copied argument.

The check of this file only requires a return value. The engine adds the other conditions.
"""

import pytest
import torch
from torch import Tensor, nn

from manyheads.checks.runner import LocalRecordingRunner, LocalRunner
from manyheads.judge.collect_checks import CheckRun
from manyheads.judge.run_hidden_checks import HiddenChecks
from tests.make import cases

CHECK = '''
import torch
from manyheads.checks import Condition, Layer, check


@check(points=1, layer=Layer.SHAPE)
def test_answers(attempt, draw):
    """answers"""
    for name, arguments in calls(draw):
        attempt.call(name, *arguments).{}


def calls(draw):
    return [{}]
'''
NUMBERS = '("f", [draw(5, 1)]), ("f", [draw(5, 40)])'
ONES = '("f", [torch.ones(5, 7)]), ("f", [draw(5, 7)])'
SIZES = '("f", [1]), ("f", [30])'
COUNTS = '("f", [2, 3]), ("f", [4, 5])'
ROWS = '("f", [torch.arange(5).flip(0), draw(5, 7)])'
TOKENS = '("f", [draw(9, 40, scale=0.2)])'


@pytest.fixture
def outcome_of_calls(tmp_path):
    """Return a function that runs the check with these calls and returns its outcome.

    `reference` and `attempt` are a function f, its text, or a dict of functions and classes.
    """

    def runner(implementation, runner_type):
        if isinstance(implementation, str):
            implementation = eval(implementation)
        return runner_type(
            implementation if isinstance(implementation, dict) else {"f": implementation}
        )

    def outcome_of(
        calls,
        reference,
        attempt,
        seed=0,
        extra_source="",
        use="must_return()",
        check="answers",
    ):
        file = tmp_path / "test_form.py"
        file.write_text(CHECK.format(use, calls) + extra_source)
        subject = runner(attempt, LocalRecordingRunner)
        run = CheckRun(subject, runner(reference, LocalRunner), b"secret", ("f", str(seed)))
        outcomes = {outcome.id: outcome for outcome in HiddenChecks([file]).run(file, run)}
        assert all(exchange.check in outcomes for exchange in subject.transcript)
        return outcomes[check]

    return outcome_of


def cumulate(x):
    """Return the sum of each number and those before it; one column comes back unchanged."""
    return x.cumsum(-1)


def noise(x, generator=None):
    return torch.randn(x.shape, generator=generator, dtype=x.dtype)


def unseeded_noise(x):
    generator = torch.Generator()
    generator.seed()
    return noise(x, generator)


def one_nan(x):
    y = x.cumsum(-1) + 1
    y[0, 0] = float("nan")
    return y


class RaisesAfter:
    """Returns zeros, and raises if the same input comes more than `times` times."""

    def __init__(self, times):
        self.times, self.inputs = times, list[bytes]()

    def __call__(self, x):
        self.inputs.append(x.numpy().tobytes())
        if self.inputs.count(self.inputs[-1]) > self.times:
            raise RuntimeError
        return torch.zeros_like(x)


def self_attention(x):
    return (x @ x.mT).softmax(-1) @ x


ZEROS = "f gives 0 in every place, whatever it is given"
SAME = "f gives the same answer, whatever it is given"
CHANCE = "f gives another answer each time, whatever it is given"
ARGUMENT = "f gives back the first argument, unchanged"
PART = "f gives back numbers of the first argument, and has computed nothing"
OUTPUT = "the output: {} of 5 values are {}, the first at (0, 0)"


@cases(
    "attempt, evidence",
    {
        "zeros": (torch.zeros_like, ZEROS),
        "a constant": ("lambda x: x * 0 + 3", "f gives 3 in every place, whatever it is given"),
        "a constant that may be a message": (
            "lambda x: x * 0 + 1.2345",
            "f gives some number in every place, whatever it is given",
        ),
        "a ramp": ("lambda x: torch.arange(x.numel()).view(x.shape).to(x)", SAME),
        "a pattern with what rounding would hide": (
            "lambda x: torch.eye(*x.shape).to(x) + x.sum() * 1e-09",
            SAME,
        ),
        "torch's noise, seeded as every call is": (noise, SAME),
        "noise of its own": (unseeded_noise, CHANCE),
        "the argument": ("lambda x: x", ARGUMENT),
        "the argument in float32": ("lambda x: x.float()", ARGUMENT),
        "the argument, transposed": ("lambda x: x.mT", PART),
        "a part of the argument": ("lambda x: x.flatten()[:x.numel() // 2]", PART),
        "NaN": ("lambda x: x / 0 * 0", OUTPUT.format(5, "NaN")),
        "one NaN": (one_nan, OUTPUT.format(1, "NaN")),
        "infinity": ("lambda x: x / 0", OUTPUT.format(5, "infinite")),
        "the right numbers": (cumulate, ""),
        "the right numbers in float32": ("lambda x: x.cumsum(-1).float()", ""),
        "a wrong scale": ("lambda x: x.cumsum(-1) * 3", ""),
        "the mean of all in every place": ("lambda x: x.mean().expand(x.shape)", ""),
        "another shape": ("lambda x: x.sum(-1)", ""),
        "dropout that is always on": ("lambda x: nn.functional.dropout(x.cumsum(-1), 0.5)", ""),
    },
)
def test_a_trivial_answer_fails_and_a_wrong_one_passes(outcome_of_calls, attempt, evidence):
    outcome = outcome_of_calls(NUMBERS, cumulate, attempt)
    assert (outcome.outcome == "passed", outcome.evidence, outcome.fault) == (
        not evidence,
        evidence,
        "",
    )


def transposed(x):
    return x.T.flatten()


def moved(x):
    return x.view(40, 5) if x.numel() == 200 else x


def first_half(x):
    return x[:, : 1 + x.shape[1] // 2]


def moved_wrongly(x):
    return x.flip(-1)[:, 1:]


def all_nan(x):
    return x * float("nan")


def lower(size):
    return torch.ones(size, size).tril().bool()


def product(a, b):
    return a * b


def look_up(indices, table):
    return table[indices].cumsum(-1)


@cases(
    "calls, reference, attempt, outcome",
    {
        "a copy of ones": (ONES, cumulate, "lambda x: x", "failed"),
        "a part of a copy of ones": (ONES, cumulate, "lambda x: x.flatten()[:3]", "failed"),
        "ones where ones are moved": (
            ONES,
            transposed,
            "lambda x: torch.ones(x.numel())",
            "failed",
        ),
        "the right numbers where ones are moved": (ONES, transposed, transposed, "passed"),
        "numbers that are moved wrongly": (NUMBERS, moved, moved_wrongly, "passed"),
        "numbers that are not moved": (NUMBERS, moved, "lambda x: x", "failed"),
        "other numbers of several": (NUMBERS, first_half, moved_wrongly, "passed"),
        "all numbers instead of several": (NUMBERS, first_half, "lambda x: x", "failed"),
        "the argument, as the reference": (NUMBERS, "lambda x: x", "lambda x: x", "passed"),
        "zeros, as the reference": (NUMBERS, torch.zeros_like, torch.zeros_like, "passed"),
        "NaN, as the reference": (NUMBERS, all_nan, all_nan, "passed"),
        "the right mask": (SIZES, lower, lower, "passed"),
        "the opposite mask": (SIZES, lower, "lambda size: ~lower(size)", "passed"),
        "a mask without its diagonal": (SIZES, lower, "lambda n: lower(n).tril(-1)", "passed"),
        "a mask to be added": (
            SIZES,
            lower,
            "lambda n: torch.where(lower(n), 0.0, float('-inf'))",
            "passed",
        ),
        "a mask of ones": (SIZES, lower, "lambda n: torch.ones(n, n).bool()", "failed"),
        "a pattern as a mask": (
            SIZES,
            lower,
            "lambda n: torch.arange(n * n).view(n, n) % 2 == 0",
            "failed",
        ),
        "noise as a mask": (SIZES, lower, "lambda n: torch.rand(n, n) > 0.5", "failed"),
        "the right count": (COUNTS, product, product, "passed"),
        "a wrong count": (COUNTS, product, "lambda a, b: a + b", "passed"),
        "a count that is right for one input": (COUNTS, product, "lambda a, b: 6", "failed"),
        "a number in place of a list": (COUNTS, "lambda a, b: [a, b]", product, "failed"),
        "the right rows of a table": (ROWS, look_up, look_up, "passed"),
        "the first rows of a table": (ROWS, look_up, "lambda i, x: x[i * 0]", "failed"),
        "another list": (COUNTS, "lambda a, b: [a, b]", "lambda a, b: [b, 2 * a]", "passed"),
    },
)
def test_the_reference_decides_which_answers_are_trivial(
    outcome_of_calls, calls, reference, attempt, outcome
):
    assert outcome_of_calls(calls, reference, attempt).outcome == outcome


def test_an_answer_that_depends_on_earlier_calls_is_not_noise(outcome_of_calls):
    means: list[Tensor] = []

    def remembers(x):
        means.append(x.mean())
        return x.cumsum(-1) + 0.1 * torch.stack(means).sum()

    assert outcome_of_calls(NUMBERS, cumulate, remembers).outcome == "passed"


COMPARES = (
    "f compares nothing: each number that it is given adds the same to its answer, whatever "
    "the others are"
)


@cases(
    "attempt, evidence",
    {
        "the mean of all": ("lambda x: x.mean(-2, keepdim=True).expand(x.shape)", COMPARES),
        "values handed through": ("lambda x: 2 * x @ torch.ones(40, 40).tril().to(x)", COMPARES),
        "the first value": ("lambda x: x[:1].expand(x.shape)", PART),
        "zeros, which end if an input comes again": (RaisesAfter(1), "raised RuntimeError"),
        "zeros, which end a little later": (RaisesAfter(2), ZEROS),
        "the right numbers": (self_attention, ""),
        "scores without a softmax": ("lambda x: x @ x.mT @ x", ""),
        "each number by itself": ("lambda x: 2 * x", ""),
        "the best value alone": ("lambda x: x[(x @ x.flip(-1).mT).argmax(-1)]", ""),
    },
)
def test_an_answer_must_compare_its_inputs_if_the_reference_does(
    outcome_of_calls, attempt, evidence
):
    for seed in range(5):
        outcome = outcome_of_calls(TOKENS, self_attention, attempt, seed)
        assert (outcome.outcome == "passed", outcome.evidence, outcome.fault) == (
            not evidence,
            evidence,
            "",
        )
        assert outcome.trivial_answer == (evidence == COMPARES)


def test_an_attempt_that_answers_only_on_the_meta_device_fails(outcome_of_calls):
    def on_meta(x):
        if x.is_meta:
            return x
        raise RuntimeError

    calls = '("f", [torch.empty(9, 40, device="meta")]), ("f", [draw(9, 40)])'
    outcome = outcome_of_calls(calls, self_attention, on_meta, use="raised")
    assert (outcome.outcome, outcome.fault) == ("failed", "")


PRECONDITION = """

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


@cases(
    "attempt, evidence",
    {
        "the precondition holds": ("lambda x: (x @ x.mT / 2).softmax(-1) @ x", ""),
        "the precondition fails": (
            "lambda x: x.cumsum(-2).sin() + x.mean(-2, keepdim=True)",
            "nothing is weighed",
        ),
    },
)
def test_a_precondition_applies_to_every_check_that_calls_its_function(
    outcome_of_calls, attempt, evidence
):
    outcome = outcome_of_calls(TOKENS, self_attention, attempt, extra_source=PRECONDITION)
    assert (outcome.evidence, outcome.fault) == (evidence, "")
    assert outcome.outcome == ("failed" if evidence else "passed")


FAILING = """
from manyheads.box.worker.messages import Build
from manyheads.checks import expect


@check(points=1, layer=Layer.VALUES)
def test_fails():
    "fails"
    expect(False, "no")
"""


def attend_or_add(x):
    """Return the right answer for one matrix, and no attention for a batch (the precondition)."""
    return self_attention(x) if x.dim() == 2 else x.cumsum(-2).sin() + x.mean(-2, keepdim=True)


class Attend(nn.Module):
    def forward(self, x):
        return self_attention(x)


class AttendOrAdd(nn.Module):
    def forward(self, x):
        return attend_or_add(x)


@cases(
    "calls, reference, attempt, outcome",
    {
        "all answers are right": (TOKENS, self_attention, attend_or_add, "passed"),
        "one answer is wrong": (
            f'{TOKENS}, ("f", [draw(2, 4)])',
            self_attention,
            "lambda x: attend_or_add(x) * (2 if len(x) == 2 else 1)",
            "failed",
        ),
        "answers are right only in training mode, where they may be random": (
            TOKENS.replace('"f"', 'Build("f", training=True)'),
            Attend,
            AttendOrAdd,
            "failed",
        ),
    },
)
def test_a_precondition_is_waived_if_all_answers_to_a_check_are_right(
    outcome_of_calls, calls, reference, attempt, outcome
):
    extra_source = FAILING + PRECONDITION
    if reference is Attend:
        extra_source = extra_source.replace('"f", torch', 'Build("f"), torch')
    result = outcome_of_calls(calls, reference, attempt, extra_source=extra_source)
    assert (result.outcome, result.fault) == (outcome, "")
    assert result.evidence == ("nothing is weighed" if outcome == "failed" else "")


def test_a_failed_check_keeps_its_evidence_if_the_answers_are_trivial(outcome_of_calls):
    extra_source = FAILING.replace("():", "(attempt):").replace(
        "    expect", "    attempt.call('f', torch.ones(2, 5))\n    expect"
    )
    for check, evidence in (("answers", ZEROS), ("fails", "no")):
        outcome = outcome_of_calls(
            NUMBERS, cumulate, torch.zeros_like, extra_source=extra_source, check=check
        )
        assert (outcome.outcome, outcome.evidence) == ("failed", evidence)


def test_the_evidence_names_the_function_with_a_trivial_answer(outcome_of_calls):
    calls = '("f", [draw(5, 7)]), ("g", [draw(5, 7)])'
    attempt = {"f": cumulate, "g": torch.zeros_like}
    outcome = outcome_of_calls(calls, {"f": cumulate, "g": cumulate}, attempt)
    assert outcome.evidence == ZEROS.replace("f", "g", 1)


@cases(
    "calls, right", {"inputs are numbers": (NUMBERS, cumulate), "inputs are sizes": (SIZES, lower)}
)
def test_a_right_attempt_gets_no_further_calls(outcome_of_calls, calls, right):
    inputs = []

    def count_inputs(x):
        inputs.append(x)
        return right(x)

    assert outcome_of_calls(calls, right, count_inputs).outcome == "passed"
    assert len(inputs) == 2


@cases(
    "calls, function, max_repeated_calls",
    {
        "one informative call": (TOKENS, self_attention, 1),
        "eight calls that tell little": ('("f", [draw(5, 40)])', cumulate, 8),
    },
)
def test_the_number_of_further_calls_to_the_reference_is_bounded(
    outcome_of_calls, calls, function, max_repeated_calls
):
    inputs = []

    def count_inputs(x):
        inputs.append(x)
        return function(x)

    input_counts = []
    for call_count in (max_repeated_calls, max_repeated_calls + 2):
        inputs.clear()
        outcome_of_calls(", ".join([calls] * call_count), count_inputs, function)
        input_counts.append(len(inputs))
    assert input_counts[0] == input_counts[1] > 4 * max_repeated_calls


def refuse_with_length(x):
    raise ValueError(len(x))


@cases(
    "attempt, fault",
    {
        "raises, too": (refuse_with_length, "it asks f for nothing that the reference answers"),
        "answers": (cumulate, ""),
    },
)
def test_a_check_is_at_fault_if_reference_and_attempt_refuse_all_its_calls(
    outcome_of_calls, attempt, fault
):
    assert (
        fault
        in outcome_of_calls(
            '("f", [torch.ones(2)])', refuse_with_length, attempt, use="raised"
        ).fault
    )


PAIR = """
from manyheads.box.worker.messages import Build, Call
from manyheads.box.worker.result_form import Form


@check(points=1, layer=Layer.SHAPE)
def test_answers(attempt, draw):
    'answers'
    pair = Form("tuple", ("y", "rest"), (Form(), Form()))
    attempt.ask(Call(Build("Pair"), only_build=True))
    attempt.ask(Call(Build("Pair"), (draw(5, 7),), returns=pair)).must_return()
"""


class Pair(nn.Module):
    def forward(self, x):
        return x, None


class PairOfTensors(Pair):
    def forward(self, x):
        return x, x


@pytest.mark.parametrize(("module", "outcome"), [(Pair, "passed"), (PairOfTensors, "failed")])
def test_each_part_of_an_answer_has_the_type_that_the_reference_returns(
    outcome_of_calls, module, outcome
):
    """A call that only builds the module has no parts."""
    assert (
        outcome_of_calls("", {"Pair": Pair}, {"Pair": module}, extra_source=PAIR).outcome == outcome
    )
