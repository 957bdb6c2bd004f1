"""Fixtures that trace attempts at the exercises of the real course.

The attempts are trusted, so they run in the process of the tests.
"""

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
from tests.student.real import example_calls, reference_source


@pytest.fixture
def follow_source(monkeypatch):
    """Return a function that traces a source on the example calls of an exercise.

    source: the reference by default. crop: the sizes of the tables that are kept.
    times: the number of visits of a line that are kept.
    """

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

        selected = [
            with_twin(example, (example, *example.instead), run) for example in example_calls(id_)
        ]
        return [(example, run(example.call)) for example in (*selected, *more_examples)]

    return follow


@pytest.fixture
def explain(follow_source):
    """Return a function that explains each example call of a source, by default the reference."""

    def explain(id_: str, source: str | None = None, crop: tuple[int, ...] = ()):
        attempt = Source("a.py", reference_source(id_) if source is None else source)
        followed = follow_source(id_, source, crop, 1)
        return [explain_example(example, traced, attempt) for example, traced in followed]

    return explain


@pytest.fixture
def draw(follow_source):
    """Return a function that draws the pictures of a source, by default the reference."""
    return lambda *arguments, **options: pictures(follow_source(*arguments, **options))
