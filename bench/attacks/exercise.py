"""The exercise that every grader grades: tests/tiny_course's running mean, with the same four checks, a point each."""

from __future__ import annotations

import shutil
from pathlib import Path

from ..assignment import Assignment
from ..places import REPOSITORY

TINY_COURSE = REPOSITORY / "tests" / "tiny_course"
TRICKS = Path(__file__).parent / "tricks"
HIDDEN = (
    "solutions/averages/01_running_mean.py",
    "grader/checks/test_running_mean.py",
    "grader/misconceptions/running_mean.py",
)

HOSTILE, NEIGHBOUR = "mallory", "zzz_honest"  # graded in this order
STUDENTS = (HOSTILE, NEIGHBOUR)
SECRET = "manyheads_bench_secret_of_the_hidden_tests"  # stands in the hidden tests and nowhere else

HONEST = (TINY_COURSE / "grader" / "right" / "running_mean" / "loop.py").read_text(encoding="utf-8")

_SETUP = f'''\
import torch

SECRET = "{SECRET}"


def by_hand(x):
    return torch.stack([x[: t + 1].sum() / (t + 1) for t in range(len(x))])
'''
_CHECKS = {
    "shape": """\
assert running_mean(torch.randn(7, dtype=torch.float64)).shape == (7,)
""",
    "values": """\
x = torch.randn(6, dtype=torch.float64)
torch.testing.assert_close(running_mean(x), by_hand(x))
""",
    "gradients": """\
x = torch.randn(6, dtype=torch.float64, requires_grad=True)
(got,) = torch.autograd.grad(running_mean(x).sum(), x)
(want,) = torch.autograd.grad(by_hand(x).sum(), x)
torch.testing.assert_close(got, want)
""",
    "refuses_nothing": """\
try:
    running_mean(torch.empty(0, dtype=torch.float64))
except (ValueError, AssertionError):
    pass
else:
    raise AssertionError("an empty input is accepted")
""",
}
RUNNING_MEAN = Assignment("running_mean", ("running_mean",), _SETUP, _CHECKS)
POINTS = RUNNING_MEAN.points


def lay_out(course: Path) -> None:
    """A copy of the tiny course, with the secret in all that is hidden."""
    shutil.copytree(TINY_COURSE, course, ignore=shutil.ignore_patterns("__pycache__", ".course"))
    for place in HIDDEN:
        with (course / place).open("a", encoding="utf-8") as file:
            file.write(f"\nSECRET = '{SECRET}'\n")


def attempt_of(trick: str, folder: Path, port: int) -> dict[str, str]:
    """What the hostile student hands in: the attempt as `attempt.py`, and what lies beside it.

    The attempt is told where the class lies and where somebody listens, as if its author had looked around before.
    """
    text = (TRICKS / f"{trick}.py").read_text(encoding="utf-8")
    files = {"attempt.py": text.replace("@FOLDER@", str(folder)).replace("@PORT@", str(port))}
    for path in sorted((TRICKS / trick).glob("*.py")):
        files[path.name] = path.read_text(encoding="utf-8")
    return files
