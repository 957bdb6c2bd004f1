"""An attempt may import the same at every level, whatever else is installed on the machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from manyheads.box.forked import ForkedBox
from manyheads.box.level import Box
from manyheads.box.loading import load
from manyheads.box.process import ProcessBox
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Load
from tests.conftest import Run

REFUSED = ["matplotlib.pyplot", "pytest", "yaml", "rich", "pydantic", "my_helpers", "scipy.special"]
ALLOWED = ["math", "json", "torch.nn.functional", "numpy", "einops", "safetensors.torch", "sympy", "typing_extensions"]


@pytest.fixture(params=["namespaces", "forked", "process"])
def any_box(request: pytest.FixtureRequest) -> Iterator[Box]:
    """A box of each level. This process has imported pytest, yaml, rich and pydantic, and a forked one could find them."""
    if request.param == "namespaces":
        yield request.getfixturevalue("box")
        return
    with ForkedBox(meta=False) if request.param == "forked" else ProcessBox() as opened:
        yield opened


def test_what_may_be_imported_is_the_same_in_every_box(any_box: Box) -> None:
    source = "".join(f"import {name}\n" for name in [*REFUSED, *ALLOWED, "sysconfig; sysconfig.get_config_vars()"])
    process = load(any_box, Limits(seconds_per_call=20.0), Load(source, "a.py"))
    process.connection.close()
    assert [part.line for part in process.stopped] == [*range(1, len(REFUSED) + 1)]
    assert {part.raised.type for part in process.stopped if part.raised} == {"ModuleNotFoundError"}
    assert process.stopped[0].raised.message.startswith("No module named 'matplotlib")


def test_a_students_own_check_tells_the_line_and_goes_on(run_course: Run, tiny_copy: Path) -> None:
    """pytest can be imported here. In the box it cannot."""
    right = (tiny_copy / "grader" / "right" / "running_mean" / "loop.py").read_text(encoding="utf-8")
    attempt = tiny_copy / "exercises" / "averages" / "01_running_mean.py"
    attempt.write_text(f"import pytest\n{right}", encoding="utf-8")
    done = run_course("check", "running_mean", cwd=tiny_copy)
    assert done.returncode == 0, done.stdout
    said = "Line 1 did not run to its end: there is no module pytest where attempts are judged."
    assert said in " ".join(done.stdout.split())
