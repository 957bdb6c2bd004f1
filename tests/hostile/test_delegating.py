"""A check detects each way to call torch's fused attention; no message contains a hidden input."""

import pytest

from manyheads.box.connection import Box
from manyheads.course import Course, Exercise
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.result import ExerciseResult
from manyheads.submission import Source
from tests.diagnosis.both_sides import Sides
from tests.make import REPOSITORY

SOLUTION = (REPOSITORY / "solutions" / "multi_head_attention" / "07_fused_qkv.py").read_text(
    encoding="utf-8"
)
MATH = SOLUTION[
    SOLUTION.index("        scores = q @ k") : SOLUTION.index("        y = y.transpose(1, 2)")
]
IMPORTS = "from torch import nn\n"
RATE = "self.attn_dropout.p if self.training else 0.0"
ARGUMENTS = f"(q, k, v, dropout_p={RATE}, is_causal=True)"
FUSED = "nn.functional.scaled_dot_product_attention"
OTHER_NAME = f"{IMPORTS}mix = torch._C._nn.scaled_dot_product_attention\n"
IN_A_THREAD = f"""{IMPORTS}from concurrent.futures import ThreadPoolExecutor


def fused(q, k, v, p, grad):
    with torch.set_grad_enabled(grad):
        return {FUSED}{ARGUMENTS.replace(RATE, "p")}
"""
MULTIHEAD = """        hidden = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        out, _ = nn.functional.multi_head_attention_forward(
            *[x.transpose(0, 1)] * 3, C, self.n_head, self.qkv.weight, None, None, None, False,
            self.attn_dropout.p, self.proj.weight, None, self.training, None, False, hidden,
        )
        return self.resid_dropout(out.transpose(0, 1))
"""
# Edits of the solution (old text: new text) that call the fused function in place of the math.
DELEGATES = {
    "the fused function": {MATH: f"        y = {FUSED}{ARGUMENTS}\n"},
    "the operator by its own name": {
        MATH: (
            f"        y = torch.ops.aten.scaled_dot_product_attention(q, k, v, None, {RATE}, "
            "True)\n"
        )
    },
    "the function under another name": {
        IMPORTS: OTHER_NAME,
        MATH: f"        with torch._C.DisableTorchFunction():\n            y = mix{ARGUMENTS}\n",
    },
    "in another thread": {
        IMPORTS: IN_A_THREAD,
        MATH: "        with ThreadPoolExecutor(1) as pool:\n"
        f"            y = pool.submit(fused, q, k, v, {RATE}, torch.is_grad_enabled()).result()\n",
    },
    "the function of the multi-head module": {MATH: MULTIHEAD},
}


@pytest.mark.parametrize(
    "changes", [pytest.param(changes, id=name) for name, changes in DELEGATES.items()]
)
def test_calling_the_fused_function_fails_only_its_own_check(box, tiny, changes):
    result = Sides(box, tiny).grade_attempt("fused_qkv", changes)
    assert [check.id for check in result.checks if check.outcome != "passed"] == ["written_out"]
    assert "delegated" in [misconception.id for misconception in result.diagnosis]


# The attempt keeps the first input that it gets: in torch, in files of every writable folder, and
# in the environment. Each call raises an exception with that number.
ATTEMPT_KEEPING_AN_INPUT = """
import os, sys, torch

PLACES = ["/tmp/kept", "/dev/shm/kept", "/var/tmp/kept", os.path.join(os.getcwd(), "kept"), \
os.path.join(os.path.dirname(torch.__file__), "kept")]

def first(number):
    for where in (*PLACES, None):
        try:
            number = open(where).read() if where else getattr(torch, "kept", \
os.environ.get("KEPT", number))
            break
        except OSError:
            pass
    torch.kept = sys.kept = os.environ["KEPT"] = number
    for where in PLACES:
        try:
            open(where, "x").write(number)
        except OSError:
            pass
    return number

def running_mean(x):
    raise RuntimeError("met " + first(str(float(x.double().sum()))))
"""


def grade_with_secret(
    course: Course, box: Box, exercise: Exercise, secret: bytes
) -> ExerciseResult:
    """Grade the attempt that keeps an input. The hidden inputs are drawn from the secret."""
    judge = Judge(course, box, Settings(secret, lines=False))
    return judge.grade_attempt(
        "student", exercise, Source("01_running_mean.py", ATTEMPT_KEEPING_AN_INPUT)
    )


@pytest.mark.parametrize(
    "earlier_secret", [b"", b"another run"], ids=["alone", "after a run with other inputs"]
)
def test_messages_contain_no_hidden_input(tiny, box, running_mean, earlier_secret):
    if earlier_secret:
        grade_with_secret(tiny, box, running_mean, earlier_secret)
    first_result, second_result = (
        grade_with_secret(tiny, box, running_mean, secret) for secret in (b"one", b"other")
    )
    assert first_result == second_result, "the inputs differ, and nothing else"
    assert first_result.functions[0].evidence == "raised RuntimeError on line 22"
    assert "met " not in first_result.model_dump_json(), (
        "the message must be hidden, whether the number comes from a hidden or a public call"
    )
