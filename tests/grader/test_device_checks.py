"""The further checks of `course grade --device cuda`: half precision, memory, equality with a CPU.

Half precision is also tested on a CPU, which supports torch.autocast, too.
"""

import math
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from types import ModuleType, SimpleNamespace

import pytest
import torch

from manyheads.box.worker.messages import Call, Operations, Output, Reply
from manyheads.checks.asserts import TOLERANCES, difference
from manyheads.checks.hidden_check import AttemptRaised, CheckFailed, CheckOutcome, Draw
from manyheads.checks.runner import (
    Implementation,
    LocalRecordingRunner,
    LocalRunner,
    namespace_of,
    namespace_of_source,
)
from manyheads.course import Exercise, load_course
from manyheads.judge.collect_checks import CheckRun
from manyheads.judge.run_hidden_checks import HiddenChecks
from tests.make import REPOSITORY

EXERCISES = {exercise.id: exercise for exercise in load_course(REPOSITORY).assignments[0].exercises}
SELF_ATTENTION, _, _, SDPA = MODULES = [
    EXERCISES[id_] for id_ in ("self_attention", "weight_split", "fused_qkv", "sdpa_equivalence")
]
# Right attempts, by exercise, that fill a mask with -1e9
TOO_LARGE_FOR_FLOAT16 = {"self_attention": "bmm_baddbmm", "weight_split": "bmm_batch_of_heads"}
OVERFLOW = "value cannot be converted to type Half without overflow"
WITH_TORCH_2_6 = {("expanded_mask", OVERFLOW)}  # raised by torch 2.6, but not by 2.13

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings that attempts cause do not matter here
each_module_exercise = pytest.mark.parametrize(
    "exercise", MODULES, ids=lambda exercise: exercise.id
)


def checks_module(exercise: Exercise) -> ModuleType:
    """Return the checks of an exercise as a module that no other test shares."""
    namespace = namespace_of_source(exercise.checks.read_text(encoding="utf-8"), exercise.checks)
    return sys.modules[str(namespace["__name__"])]


def reference_of(exercise: Exercise) -> Implementation:
    return Implementation(LocalRunner(namespace_of(exercise.solution)))


def half_precision_of(checks: ModuleType) -> Callable[..., None]:
    """Return the check of half precision, from the file or from its CONTRACT."""
    in_contract = {check.__name__: check for check in vars(checks).get("CONTRACT", [])}
    return {**vars(checks), **in_contract}["test_half_precision"]


def check_half_precision(exercise: Exercise, attempt: Mapping[str, object]) -> None:
    """Run the check of half precision on an attempt, given as a namespace."""
    check = half_precision_of(checks_module(exercise))
    check(Implementation(LocalRunner(attempt)), reference_of(exercise), Draw(0))


def float16_overflows(exercise: Exercise) -> set[tuple[str, str]]:
    """Return the right attempts of an exercise that overflow in float16, with the message."""
    return {(name, OVERFLOW) for id_, name in TOO_LARGE_FOR_FLOAT16.items() if id_ == exercise.id}


def raised_in_half_precision(
    exercise: Exercise, checks: ModuleType, device: str
) -> set[tuple[str, str]]:
    """Return the name and the message of each right attempt that raises in half precision.

    Messages that only an older torch gives are left out.
    """
    reference_impl, raised = reference_of(exercise), set()
    for path in exercise.right_attempts():
        try:
            half_precision_of(checks)(
                Implementation(LocalRunner(namespace_of(path), device)), reference_impl, Draw(0)
            )
        except AttemptRaised as error:
            raised.add((path.stem, re.sub(r"(\w+::)+Half", "Half", error.raised.message)))
    return raised - WITH_TORCH_2_6


@each_module_exercise
def test_the_tolerance_is_a_few_times_the_largest_error_of_right_attempts(
    exercise: Exercise, monkeypatch
) -> None:
    checks = checks_module(exercise)
    errors = defaultdict[str, list[float]](list)  # of each dtype
    module = sys.modules[f"{checks.__package__}._modules"]
    monkeypatch.setattr(
        module,
        "assert_near",
        lambda a, b, *_: errors[a.call.autocast].append(difference(a.output, b.output)),
    )
    assert raised_in_half_precision(exercise, checks, "cpu") == float16_overflows(exercise)
    for dtype, tolerance in TOLERANCES.items():
        assert len(errors[dtype]) >= 25  # so that the largest one means something
        assert tolerance / 20 < max(errors[dtype]) < tolerance / 2


def attention(
    score: Callable[[torch.Tensor], torch.Tensor], gain: float = 1.0
) -> Mapping[str, object]:
    """Return an attempt at self_attention that is right with a causal `score` and a gain of 1.

    Args:
        score: A function of the scores, such as a mask.
        gain: A factor of the output.
    """

    class CausalAttention(torch.nn.Module):
        def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
            super().__init__()
            for name in ("W_query", "W_key", "W_value"):
                setattr(self, name, torch.nn.Linear(d_in, d_out, bias=qkv_bias))

        def forward(self, x):
            q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
            return gain * (score(q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v)

    return {"CausalAttention": CausalAttention}


def mask_scores(scores: torch.Tensor, fill: float = -math.inf) -> torch.Tensor:
    return scores.masked_fill(torch.ones_like(scores).triu(1).bool(), fill)


@pytest.mark.parametrize(
    ("attempt", "evidence"),
    [
        pytest.param(
            attention(lambda s: mask_scores(s, -1e9)),
            "^RuntimeError$",
            id="a fill that float16 cannot hold",
        ),
        pytest.param(
            attention(lambda s: mask_scores(s * 1e6 / 1e6)),
            r"^under autocast in float16, the output: \d+ of \d+ values are NaN",
            id="scores that leave float16 on the way",
        ),
        pytest.param(
            attention(mask_scores, gain=1.02),
            (
                r"^under autocast in float16, the output differs by 2\.\d% of the largest value; "
                r"rounding explains 0\.5%$"
            ),
            id="more than float16 rounds",
        ),
    ],
)
def test_the_check_of_half_precision_finds_the_mistake(attempt, evidence):
    with pytest.raises(CheckFailed, match=evidence):
        check_half_precision(SELF_ATTENTION, attempt)


def test_a_mask_with_the_minimum_of_the_dtype_passes() -> None:
    check_half_precision(SELF_ATTENTION, attention(mask_scores))
    check_half_precision(
        SELF_ATTENTION, attention(lambda s: mask_scores(s, torch.finfo(s.dtype).min))
    )


class RunnerWithPeakMemory:
    """A runner whose call reports a peak memory of `share` of a B · nh · T² matrix."""

    device = "cuda"

    def __init__(self, share: float | None, *, fused: bool = False) -> None:
        self._share = share
        self._operations = Operations(fused)
        self.last_call: Call | None = None

    def execute(self, call: Call) -> Reply:
        self.last_call = call
        peak = None if self._share is None else int(self._share * 12 * 4096**2 * 4)
        return Reply(
            outputs=(Output("tensor", torch.zeros(1)),), peak=peak, operations=self._operations
        )


@pytest.mark.parametrize(("fused", "suspect"), [(False, "delegated"), (True, "materialised")])
def test_the_fast_path_may_hold_no_more_than_a_quarter_of_a_score_matrix(fused, suspect):
    check = checks_module(SDPA).test_memory
    frugal = RunnerWithPeakMemory(0.2)
    check(Implementation(frugal), Draw(0))
    assert frugal.last_call is not None
    # no fast kernel of a GPU does float64
    assert (frugal.last_call.memory, frugal.last_call.dtype) == (True, "float32")
    with pytest.raises(
        CheckFailed, match=r"^flash=True holds 0\.3 times B · nh · T² numbers at its peak$"
    ) as caught:
        check(Implementation(RunnerWithPeakMemory(0.3, fused=fused)), Draw(0))
    assert caught.value.suspect == suspect


def test_the_memory_check_is_skipped_if_no_memory_is_reported() -> None:
    with pytest.raises(pytest.skip.Exception, match="does not say how much memory"):
        checks_module(SDPA).test_memory(Implementation(RunnerWithPeakMemory(None)), Draw(0))


def outcomes_on(device: str, exercise: Exercise) -> dict[str, CheckOutcome]:
    """Return the outcomes of the reference on `device`, with all checks that a GPU has."""
    path, reference_runner = exercise.checks, reference_of(exercise).runner
    subject = LocalRecordingRunner(reference_runner.namespace, device)
    run = CheckRun(subject, reference_runner, b"secret", (exercise.id,), forms=exercise.forms)
    return {outcome.id: outcome for outcome in HiddenChecks([path], device="cuda").run(path, run)}


@each_module_exercise
def test_the_reference_passes_the_checks_for_a_gpu_which_add_no_points(exercise: Exercise) -> None:
    outcomes = outcomes_on("cpu", exercise)
    assert outcomes.keys() >= {"half_precision"}
    assert {o.outcome for id_, o in outcomes.items() if id_ != "memory"} == {"passed"}
    assert sum(o.points for o in outcomes.values()) == exercise.points


@pytest.mark.gpu
@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_the_reference_on_a_gpu_agrees_with_itself_on_the_cpu(exercise):
    assert {o.outcome for o in outcomes_on("cuda", exercise).values()} == {"passed"}


@pytest.mark.gpu
@each_module_exercise
def test_right_attempts_on_a_gpu_stay_within_the_tolerance(exercise: Exercise) -> None:
    assert raised_in_half_precision(exercise, checks_module(exercise), "cuda") == float16_overflows(
        exercise
    )


@pytest.mark.gpu
def test_on_a_gpu_only_the_manual_path_holds_a_score_matrix() -> None:
    checks = checks_module(SDPA)
    gpu = Implementation(LocalRunner(namespace_of(SDPA.solution), "cuda"))
    checks.test_memory(gpu, Draw(0))
    s = SimpleNamespace(B=1, T=4096, nh=12, C=192, block=4096)
    float32_gpu = gpu.with_options(dtype="float32", memory=True)
    weights, (x,) = checks.MODULE.weights_and_inputs(Draw(0), s)
    by_hand = checks.layer(float32_gpu, s, weights, flash=False)(x)
    assert by_hand.reply.peak is not None
    assert by_hand.reply.peak > 12 * 4096**2 * 4
