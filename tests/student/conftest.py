"""Attempts at the real course's exercises, followed in this process: what is followed here is
trusted.
"""

import sys
import types

import pytest

from manyheads.box.worker.messages import Build, Call, TraceCall, Traced
from manyheads.box.worker.trace_operations import trace
from manyheads.checks.runner import cast
from manyheads.student.choose_example_calls import Example, with_twin
from manyheads.student.trace import Explained, explain_example
from manyheads.student.train_model import attention_of
from manyheads.submission import Source
from tests.student.real import Explain, FollowSource, exercise_of, looks_at, solution


@pytest.fixture
def follow_source(monkeypatch: pytest.MonkeyPatch) -> FollowSource:
    """Follow this source on the looks of an exercise; by default the reference."""

    def follow(
        id_: str, source: str | None = None, *, crop: tuple[int, ...] = (), times: int = 1
    ) -> list[tuple[Example, Traced]]:
        module = types.ModuleType("attempt")
        monkeypatch.setitem(sys.modules, "attempt", module)  # a dataclass looks its module up
        exec(
            compile(solution(id_) if source is None else source, "a.py", "exec", dont_inherit=True),
            vars(module),
        )

        def run(call: Call) -> Traced:
            return trace(vars(module), TraceCall(cast(call, "float32"), crop, times), "a.py")

        return [
            (with_twin(example, (example, *example.instead), run), run(example.call))
            for example in looks_at(id_)
        ]

    return follow


@pytest.fixture
def explain(follow_source: FollowSource) -> Explain:
    """What there is to say about this source, call by call."""

    def explain(id_: str, source: str | None = None, crop: tuple[int, ...] = ()) -> list[Explained]:
        attempt = Source("a.py", solution(id_) if source is None else source)
        return [
            explain_example(example, traced, attempt)
            for example, traced in follow_source(id_, source, crop=crop)
        ]

    return explain


FUSED = "fused_qkv"


@pytest.fixture(scope="session")
def attention() -> Build:
    """What to build of an attempt at the fused projection."""
    trainable = exercise_of(FUSED).train
    assert trainable is not None
    return attention_of(trainable)
