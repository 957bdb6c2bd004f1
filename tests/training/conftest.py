"""The real course's trainable exercises, and attempts at them in a language model."""

from __future__ import annotations

import pytest

from manyheads.box.worker.messages import Build
from manyheads.training.plan import attention_of
from manyheads.training.text import TrainingText, read_text
from tests.tools.real import exercise_of

FUSED = "fused_qkv"


@pytest.fixture(scope="session")
def text() -> TrainingText:
    """The text that the course ships."""
    return read_text()


@pytest.fixture(scope="session")
def attention() -> Build:
    """What to build of an attempt at the fused projection."""
    trainable = exercise_of(FUSED).train
    assert trainable is not None
    return attention_of(trainable)
