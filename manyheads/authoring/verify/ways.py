"""Attempts that give no answer, or answers that say nothing, or wrong numbers alone.

Each is the reference, with what its functions and its modules' forwards do replaced. It keeps what could earn points by
mistake: names, weights, refusals, shapes, dtypes, devices, and the operations on the way.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...course import Exercise
from ..templates import filled

Attempt = tuple[str, str]  # what it does, and its text
# What is done in place of `right(*args, **kwargs)`.
SILENT = {
    "raises an error": "raise RuntimeError('no')",
    "refuses everything": "raise ValueError('no')",
    "asks Python to exit": "raise SystemExit(0)",
    "ends its process": "os._exit(0)",
    "never ends": "while True: pass",
    "returns None": "return None",
    "returns a tuple": "return (right(*args, **kwargs),)",
    "returns a list": "return [right(*args, **kwargs)]",
    "returns text": "return 'right'",
    "returns what equals everything": "return Equal()",
    "is a generator": "yield right(*args, **kwargs)",
}

# What is given instead of a tensor, and of a number. x: the first tensor of numbers that the function was given.
EMPTY = {
    "gives zeros": ("torch.zeros_like(out)", "0"),
    "gives ones": ("torch.ones_like(out)", "1"),
    "gives a ramp": ("torch.arange(out.numel()).view(out.shape).to(out)", "7"),
    "gives the identity matrix": ("torch.eye(*(1, *out.shape)[-2:]).expand(out.shape).to(out)", "7"),
    "gives NaN": ("torch.full_like(out, float('nan'))", "float('nan')"),
    "gives infinity": ("torch.full_like(out, float('inf'))", "float('inf')"),
    "gives torch's noise": (
        "(torch.randn(out.shape) > 0 if truths(out) else torch.randn(out.shape)).to(out)",
        "torch.randn(()).item()",
    ),
    "gives noise of its own": ("noise(out, os.urandom(7))", "int.from_bytes(os.urandom(3), 'big')"),
    "gives the same noise each time": ("noise(out, b'0')", "7"),
    "gives ones and its argument's sum times 1e-9": ("torch.ones_like(out) + (x.sum() * 1e-9).to(out)", "7"),
    "gives its argument in the right shape": ("filled(out, x)", "7"),
    "gives its argument": ("x", "7"),
    "gives a copy of its argument": ("x.clone()", "7"),
    "gives zeros like its argument": ("torch.zeros_like(x)", "7"),
    "gives noise like its argument": ("torch.randn_like(x)", "7"),
    "gives NaN like its argument": ("x * float('nan')", "7"),
}
WRONG = {
    "scales its numbers": ("out * 1.5 if out.is_floating_point() else out", "out * 2"),
    "gives one wrong number": ("with_a_wrong_number(out)", "out * 2"),
}
_SAYS = "return nothing_of(right(*args, **kwargs), [*args, *kwargs.values()])"


def silent_attempts(exercise: Exercise) -> list[Attempt]:
    """Return the attempts that give no answer: a function's, a forward's, and a constructor's."""
    has_modules = "def forward(" in exercise.solution.read_text("utf-8")
    methods = ("forward", "__init__") if has_modules else ("forward",)
    return [(way, _replaced(exercise, body=body, method=method)) for method in methods for way, body in SILENT.items()]


def saying_attempts(exercise: Exercise, ways: Mapping[str, tuple[str, str]]) -> list[Attempt]:
    """Return the attempts that give these tensors and numbers in place of the right ones."""
    return [(way, _replaced(exercise, tensor=tensor, number=number)) for way, (tensor, number) in ways.items()]


def _replaced(
    exercise: Exercise, *, body: str = _SAYS, method: str = "forward", tensor: str = "out", number: str = "out"
) -> str:
    words = {"body": body, "method": method, "tensor": tensor, "number": number}
    ((_, ending),) = filled("instead", words)
    return exercise.solution.read_text("utf-8") + ending.decode()
