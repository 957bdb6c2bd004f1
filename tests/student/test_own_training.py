"""An attempt's own attention learns in a process of its own, and whatever it does there is told in one sentence."""

import pytest

from manyheads.box.level import Box
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Build
from manyheads.student.train_model import TrainingStopped, own_training_run
from manyheads.submission import AttemptSource
from tests.student.conftest import FUSED
from tests.student.real import solution

STEPS = 3
HEAD = """
import ctypes, os, time, torch
from torch import nn
class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        self.proj = nn.Linear(n_embd, n_embd)
        self.calls = 0
    def forward(self, x):
        self.calls += 1
        later = self.training and self.calls > 1
        """


def learned(box: Box, attention: Build, source: str) -> list[float]:
    """The losses of the first steps."""
    limits = Limits(seconds_per_call=3)
    attempt = AttemptSource("07_fused_qkv.py", source)
    with own_training_run(box, limits, attempt, attention) as run:
        losses = [run.step(number) for number in range(1, STEPS + 1)]
        assert len(run.write("Alice", 7)) == 7
    return losses


def test_random_numbers_of_the_attempts_own_do_not_change_what_is_read(box: Box, attention: Build) -> None:
    restless = solution(FUSED) + "\ntorch.manual_seed(7)\n"
    restless = restless.replace("        B, T, C = x.shape", "        torch.randn(5)\n        B, T, C = x.shape")
    assert "randn(5)" in restless
    assert learned(box, attention, restless) == learned(box, attention, solution(FUSED))


@pytest.mark.parametrize(("body", "sentence"), [
    pytest.param("while later: time.sleep(1)\n        return self.proj(x)",
        "No answer within 3 seconds: is there an endless loop? That was at step 2 of 600.", id="an endless loop"),
    pytest.param("if later: os._exit(0)\n        return self.proj(x)",
        "The attempt ended its own process (exit status 0) in place of answering. That was at step 2 of 600.",
        id="an exit"),
    pytest.param("if later: ctypes.string_at(0)\n        return self.proj(x)",
        "The attempt's process was ended by SIGSEGV (a crash in native code). That was at step 2 of 600.",
        id="a crash"),
    pytest.param("if later: raise RuntimeError('no more')\n        return self.proj(x)",
        "Your code raised RuntimeError on line 12, at step 2 of 600. Python says: no more", id="an exception"),
    pytest.param("return self.proj(x) * (float('nan') if later else 1)",
        "The loss became NaN (not a number) at step 2 of 600: there is nothing to learn from.", id="not a number"),
    pytest.param("return x.detach() if not self.training else self.proj(x) * float('inf')",
        "The loss became NaN (not a number) at step 1 of 600: there is nothing to learn from.", id="infinite scores"),
    pytest.param("return self.proj(x), None", "CausalSelfAttention returns a tuple; a tensor (B, T, C) is asked.",
        id="a tuple"),
    pytest.param("return self.proj(x)[:, :, :48]",
        "CausalSelfAttention returns the shape (2, 5, 48); (B, T, C) = (2, 5, 64) is asked.", id="another shape"),
    pytest.param("raise NotImplementedError",
        "Your code raised NotImplementedError on line 12: nothing is written here yet, in CausalSelfAttention.",
        id="a stub"),
])  # fmt: skip
def test_what_goes_wrong_is_one_sentence(box: Box, attention: Build, body: str, sentence: str) -> None:
    with pytest.raises(TrainingStopped) as stopped:
        learned(box, attention, HEAD + body)
    assert str(stopped.value) == sentence


def test_a_file_that_cannot_be_imported_is_told_as_such(box: Box, attention: Build) -> None:
    with pytest.raises(
        TrainingStopped, match=r"^Your code raised SyntaxError on line 1: this is not valid Python, while "
    ):
        learned(box, attention, "def")


def test_a_module_that_grabs_memory_ends_alone(box: Box, attention: Build) -> None:
    body = "later and torch.zeros(1 << 34)\n        return self.proj(x)"
    with pytest.raises(TrainingStopped, match=r"more memory was asked for than an attempt may have, at step 2 of 600"):
        learned(box, attention, HEAD + body)
