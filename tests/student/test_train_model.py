"""`course train` trains a small model with the attention of an attempt, in a sandbox.

If the attempt fails, one sentence says why.
"""

import pytest
import torch

from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Output, Reply
from manyheads.student.loaded_attempt import AttemptStopped
from manyheads.student.train_model import (
    TEXT,
    TrainingRun,
    attention_of,
    loss_words,
    own_training_run,
    read_text,
)
from manyheads.submission import Source
from manyheads.submission.newer_python import PYTHON
from tests.student.real import exercise_of, reference_source

FUSED = "fused_qkv"


def test_the_module_is_built_with_the_model_sizes():
    sizes = {"d_in": 64, "d_out": 64, "context_length": 64, "num_heads": 4}
    assert attention_of(exercise_of("weight_split").train).kwargs == sizes


@pytest.mark.parametrize(
    "outputs",
    [
        pytest.param([], id="no output"),
        pytest.param([torch.ones(3)], id="more losses than steps"),
        pytest.param([torch.ones(1, 1)], id="another shape"),
        pytest.param([torch.ones((), dtype=torch.complex64)], id="a complex number"),
        pytest.param([None], id="None"),
        pytest.param([torch.ones(()), torch.ones(())], id="two outputs"),
    ],
)
def test_a_malformed_loss_is_rejected(outputs):
    reply = Reply(outputs=tuple(Output("tensor", tensor) for tensor in outputs))
    message = (
        r"^The attempt sent something that is not an answer, at step 1 of 600\.\nNext: course ch"
    )
    with pytest.raises(AttemptStopped, match=message):
        TrainingRun(lambda _: reply, text=read_text()).step(1)


@pytest.mark.parametrize("number", [-1, 64, 1 << 40])
def test_a_character_outside_the_vocabulary_is_rejected(number):
    reply = Reply(outputs=(Output("tensor", torch.tensor([0, number])),))
    run = TrainingRun(lambda _: reply, text=read_text())
    assert len(run.vocabulary) == 64
    message = r"^The attempt sent characters that are not in the vocabulary\.\nNext: course check$"
    with pytest.raises(AttemptStopped, match=message):
        run.write("Alice", 2)


def test_the_training_text_omits_the_remark_about_its_source():
    assert "Carroll" in TEXT.read_text(encoding="utf-8").splitlines()[0]
    text = read_text()
    assert "Carroll" not in text
    assert text.startswith(
        "Alice was beginning to get very tired of sitting by her sister on the bank"
    )
    assert len(text) > 100_000


FORWARD_HEAD = """
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


@pytest.fixture
def training_run(box):
    """Return a function that starts a training run of a source."""

    def open_run(source: str):
        build = attention_of(exercise_of(FUSED).train)
        return own_training_run(
            box, Limits(seconds_per_call=3), Source("07_fused_qkv.py", source), build
        )

    return open_run


@pytest.fixture
def first_losses(training_run):
    """Return a function that trains a source for three steps and returns their losses."""

    def losses_of(source: str) -> list[float]:
        with training_run(source) as run:
            losses = [run.step(number) for number in (1, 2, 3)]
            assert len(run.write("Alice", 7)) == 7
            return losses

    return losses_of


def test_random_numbers_of_the_attempt_do_not_change_the_training_data(first_losses):
    text, line = reference_source(FUSED), "        B, T, C = x.shape"
    assert line in text
    drawing_numbers = (
        text.replace(line, f"        torch.randn(5)\n{line}") + "\ntorch.manual_seed(7)\n"
    )
    assert first_losses(drawing_numbers) == first_losses(text)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            "while later: time.sleep(1)\n        return self.proj(x)",
            "No answer within 3 seconds: is there an endless loop? That was at step 2 of 600.",
        ),
        (
            "if later: os._exit(0)\n        return self.proj(x)",
            "The attempt ended its own process (exit status 0) in place of answering. That "
            "was at step 2 of 600.",
        ),
        (
            "if later: ctypes.string_at(0)\n        return self.proj(x)",
            "The attempt's process was ended by SIGSEGV (a crash in native code). That was at "
            "step 2 of 600.",
        ),
        (
            "if later: raise RuntimeError('no more')\n        return self.proj(x)",
            "Your code raised RuntimeError on line 12, at step 2 of 600. Python says: no more",
        ),
        (
            "return self.proj(x) * (float('nan') if later else 1)",
            "The loss became NaN (not a number) at step 2 of 600: there is nothing to learn from.",
        ),
        (
            "return x.detach() if not self.training else self.proj(x) * float('inf')",
            "The loss became NaN (not a number) at step 1 of 600: there is nothing to learn from.",
        ),
        (
            "return self.proj(x), None",
            "CausalSelfAttention returns a tuple; a tensor (B, T, C) is asked.",
        ),
        (
            "return self.proj(x)[:, :, :48]",
            "CausalSelfAttention returns the shape (2, 5, 48); (B, T, C) = (2, 5, 64) is asked.",
        ),
        (
            "raise NotImplementedError",
            "Your code raised NotImplementedError on line 12: nothing is written here yet, in "
            "CausalSelfAttention.",
        ),
        (
            "later and torch.zeros(1 << 34)\n        return self.proj(x)",
            "Your code raised RuntimeError on line 12: more memory was asked for than an "
            "attempt may have, at step 2 of 600",
        ),
        (
            "def",
            f"Your code raised SyntaxError on line 12: this is not valid Python {PYTHON}, while ",
        ),
    ],
)
def test_a_failure_of_the_attempt_is_reported_in_one_sentence(first_losses, body, sentence):
    with pytest.raises(AttemptStopped) as stopped:
        first_losses(FORWARD_HEAD + body)
    assert str(stopped.value).startswith(sentence)
    assert str(stopped.value).count("\n") == 1


RIGHT = reference_source(FUSED)
UNMASKED = RIGHT.replace(".masked_fill(~self.visible[:T, :T], -math.inf)", "")


@pytest.mark.parametrize(
    ("source", "sees_future"),
    [
        pytest.param(RIGHT, False, id="right attention"),
        pytest.param(UNMASKED, True, id="attention without a mask"),
        pytest.param(
            FORWARD_HEAD + "return self.proj(x.cumsum(1))", False, id="a sum of all tokens so far"
        ),
        pytest.param(FORWARD_HEAD + "return self.proj(x)", False, id="each token alone"),
        pytest.param(
            FORWARD_HEAD + "return self.proj(x + x.roll(-1, 1))", True, id="one token ahead"
        ),
        pytest.param(
            FORWARD_HEAD + "return self.proj(x + torch.randn_like(x))", False, id="random noise"
        ),
        pytest.param(
            FORWARD_HEAD + "return self.proj(x + self.calls)",
            False,
            id="the number of calls is added",
        ),
    ],
)
def test_training_recognises_attention_that_sees_the_future(training_run, source, sees_future):
    with training_run(source) as run:
        assert run.sees_future == sees_future


def test_the_loss_is_called_meaningless_if_the_model_sees_the_future():
    assert loss_words(4.2, 0.04, sees_future=True).startswith("A loss of 0.04 says nothing here")
    assert "unsure as among 7.4 equally likely" in loss_words(4.2, 2.0, sees_future=False)
