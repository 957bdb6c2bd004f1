"""Four graders that are measured side by side. Each file says how its grader is set up, called and asked for a score."""

from .base import Grader
from .many_heads import ManyHeads
from .nbgrader import Nbgrader
from .otter import Otter
from .plain_pytest import PlainPytest

__all__ = ["Grader", "ManyHeads", "Nbgrader", "Otter", "PlainPytest"]
