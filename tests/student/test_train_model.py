"""An attempt's own attention learns in a process of its own; odd answers and whatever it does there
are told in one sentence.
"""

import pytest
import torch

from manyheads.box.connection import Box
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Build, Output, Reply, Training
from manyheads.student.train_model import (
    TEXT,
    TrainingRun,
    TrainingStopped,
    attention_of,
    loss_words,
    own_training_run,
    read_text,
)
from manyheads.submission import Source
from manyheads.submission.newer_python import PYTHON
from tests.student.conftest import FUSED
from tests.student.real import exercise_of, solution


def test_what_is_trained_is_built_with_the_sizes_of_the_model(attention):
    trainable = exercise_of("weight_split").train
    assert trainable is not None
    assert attention_of(trainable).kwargs == {
        "d_in": 64,
        "d_out": 64,
        "context_length": 64,
        "num_heads": 4,
    }


@pytest.mark.parametrize(
    "outputs",
    [
        pytest.param((), id="nothing"),
        pytest.param((Output("tensor", torch.ones(3)),), id="more losses than steps"),
        pytest.param((Output("tensor", torch.ones(1, 1)),), id="another shape"),
        pytest.param(
            (Output("tensor", torch.ones((), dtype=torch.complex64)),), id="a complex number"
        ),
        pytest.param((Output("str"),), id="no tensor"),
        pytest.param(
            (Output("tensor", torch.ones(())), Output("tensor", torch.ones(()))), id="two answers"
        ),
    ],
)
def test_an_answer_must_be_what_was_asked(outputs):
    run = TrainingRun(lambda _: Reply(outputs=outputs), read_text())
    with pytest.raises(
        TrainingStopped,
        match=(
            r"^The attempt sent something that is not an answer, "
            r"at step 1 of 600\.\nNext: course check$"
        ),
    ):
        run.step(1)


@pytest.mark.parametrize("number", [-1, 64, 1 << 40])
def test_what_it_writes_must_be_characters_that_there_are(number):
    def ask(message: Training) -> Reply:
        return Reply(outputs=(Output("tensor", torch.tensor([0, number])),))

    run = TrainingRun(ask, read_text())
    assert len(run.vocabulary) == 64
    with pytest.raises(
        TrainingStopped,
        match=r"^The attempt sent characters that are not in the vocabulary\.\nNext: course check$",
    ):
        run.write("Alice", 2)


def test_remarks_name_the_source_and_are_not_read():
    assert "Carroll" in TEXT.read_text(encoding="utf-8").splitlines()[0]
    text = read_text()
    assert "Carroll" not in text
    assert text.startswith(
        "Alice was beginning to get very tired of sitting by her sister on the bank"
    )
    assert len(text) > 100_000


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


def training_losses(box: Box, attention: Build, source: str) -> list[float]:
    """The losses of the first steps."""
    limits = Limits(seconds_per_call=3)
    attempt = Source("07_fused_qkv.py", source)
    with own_training_run(box, limits, attempt, attention) as run:
        losses = [run.step(number) for number in range(1, STEPS + 1)]
        assert len(run.write("Alice", 7)) == 7
    return losses


def test_random_numbers_of_the_attempts_own_do_not_change_what_is_read(box, attention):
    restless = solution(FUSED) + "\ntorch.manual_seed(7)\n"
    restless = restless.replace(
        "        B, T, C = x.shape", "        torch.randn(5)\n        B, T, C = x.shape"
    )
    assert "randn(5)" in restless
    assert training_losses(box, attention, restless) == training_losses(
        box, attention, solution(FUSED)
    )


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        pytest.param(
            "while later: time.sleep(1)\n        return self.proj(x)",
            "No answer within 3 seconds: is there an endless loop? That was at step 2 of 600.",
            id="an endless loop",
        ),
        pytest.param(
            "if later: os._exit(0)\n        return self.proj(x)",
            (
                "The attempt ended its own process (exit status 0) in place of answering. That "
                "was at step 2 of 600."
            ),
            id="an exit",
        ),
        pytest.param(
            "if later: ctypes.string_at(0)\n        return self.proj(x)",
            (
                "The attempt's process was ended by SIGSEGV (a crash in native code). That was at "
                "step 2 of 600."
            ),
            id="a crash",
        ),
        pytest.param(
            "if later: raise RuntimeError('no more')\n        return self.proj(x)",
            "Your code raised RuntimeError on line 12, at step 2 of 600. Python says: no more",
            id="an exception",
        ),
        pytest.param(
            "return self.proj(x) * (float('nan') if later else 1)",
            "The loss became NaN (not a number) at step 2 of 600: there is nothing to learn from.",
            id="not a number",
        ),
        pytest.param(
            "return x.detach() if not self.training else self.proj(x) * float('inf')",
            "The loss became NaN (not a number) at step 1 of 600: there is nothing to learn from.",
            id="infinite scores",
        ),
        pytest.param(
            "return self.proj(x), None",
            "CausalSelfAttention returns a tuple; a tensor (B, T, C) is asked.",
            id="a tuple",
        ),
        pytest.param(
            "return self.proj(x)[:, :, :48]",
            "CausalSelfAttention returns the shape (2, 5, 48); (B, T, C) = (2, 5, 64) is asked.",
            id="another shape",
        ),
        pytest.param(
            "raise NotImplementedError",
            (
                "Your code raised NotImplementedError on line 12: nothing is written here yet, in "
                "CausalSelfAttention."
            ),
            id="a stub",
        ),
        pytest.param(
            "later and torch.zeros(1 << 34)\n        return self.proj(x)",
            (
                "Your code raised RuntimeError on line 12: more memory was asked for than an "
                "attempt may have, at step 2 of 600"
            ),
            id="memory, which ends it alone",
        ),
        pytest.param(
            "def",
            f"Your code raised SyntaxError on line 12: this is not valid Python {PYTHON}, while ",
            id="no Python",
        ),
    ],
)
def test_what_goes_wrong_is_one_sentence(box, attention, body, sentence):
    with pytest.raises(TrainingStopped) as stopped:
        training_losses(box, attention, HEAD + body)
    assert str(stopped.value).startswith(sentence)
    assert str(stopped.value).count("\n") == 1


CAUSAL = "return self.proj(x.cumsum(1))"


@pytest.mark.parametrize(
    ("body", "sees_future"),
    [
        pytest.param(CAUSAL, False, id="the tokens so far"),
        pytest.param("return self.proj(x)", False, id="each token by itself"),
        pytest.param("return self.proj(x + x.mean(1, keepdim=True))", True, id="all tokens"),
        pytest.param("return self.proj(x + x.roll(-1, 1))", True, id="one token ahead"),
        pytest.param("return self.proj(x + torch.randn_like(x))", False, id="at random"),
        pytest.param("return self.proj(x + self.calls)", False, id="how often it was called"),
    ],
)
def test_a_module_that_sees_the_future_is_known(box, attention, body, sees_future):
    attempt = Source("07_fused_qkv.py", HEAD + body)
    with own_training_run(box, Limits(seconds_per_call=3), attempt, attention) as run:
        assert run.sees_future == sees_future


def test_right_and_unmasked_attention_are_told_apart(box, attention):
    masked = solution(FUSED)
    unmasked = masked.replace(".masked_fill(~self.visible[:T, :T], -math.inf)", "")
    assert unmasked != masked
    for source, sees_future in ((masked, False), (unmasked, True)):
        with own_training_run(box, Limits(), Source("07.py", source), attention) as run:
            assert run.sees_future == sees_future


def test_a_loss_that_knows_the_answer_is_not_called_sure():
    sentence = loss_words(4.2, 0.04, sees_future=True)
    assert "unsure" not in sentence
    assert sentence.startswith("A loss of 0.04 says nothing here")
    assert "unsure as among 7.4 equally likely" in loss_words(4.2, 2.0, sees_future=False)
