"""Attempts at the real course's exercises, followed in this process, because they are trusted."""

import sys
import types
from collections.abc import Sequence

import pytest

from manyheads.box.worker.messages import Call, TraceCall, Traced
from manyheads.box.worker.trace_operations import trace
from manyheads.checks.runner import cast
from manyheads.student.choose_example_calls import Example, with_twin
from manyheads.student.pictures import pictures
from manyheads.student.trace import TABLES, TIMES, explain_example
from manyheads.submission import Source
from tests.student.real import looks_at, reference_source


@pytest.fixture
def follow_source(monkeypatch):
    """Follow a source, by default the reference, on the recorded calls of an exercise."""

    def follow(
        id_: str,
        source: str | None = None,
        crop: tuple[int, ...] = TABLES,
        times: int = TIMES,
        more_examples: Sequence[Example] = (),
    ) -> list[tuple[Example, Traced]]:
        module = types.ModuleType("attempt")
        monkeypatch.setitem(sys.modules, "attempt", module)  # a dataclass looks its module up
        text = reference_source(id_) if source is None else source
        exec(compile(text, "a.py", "exec", dont_inherit=True), vars(module))

        def run(call: Call) -> Traced:
            return trace(vars(module), TraceCall(cast(call, "float32"), crop, times), "a.py")

        looks = [with_twin(look, (look, *look.instead), run) for look in looks_at(id_)]
        return [(example, run(example.call)) for example in (*looks, *more_examples)]

    return follow


@pytest.fixture
def explain(follow_source):
    """Explain each call of a source, by default the reference."""

    def explain(id_: str, source: str | None = None, crop: tuple[int, ...] = ()):
        attempt = Source("a.py", reference_source(id_) if source is None else source)
        followed = follow_source(id_, source, crop, 1)
        return [explain_example(example, traced, attempt) for example, traced in followed]

    return explain


@pytest.fixture
def draw(follow_source):
    """Draw the pictures of a source, by default the reference."""
    return lambda *arguments, **options: pictures(follow_source(*arguments, **options))
