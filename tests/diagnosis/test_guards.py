"""A guard is an `if` or `assert` in the student's code that rejects arguments.

It compares only sizes of the arguments, or a limit, and no computed result.
"""

import pytest

from manyheads.box.worker.messages import Raised
from manyheads.diagnosis.evidence import guard_of, guards_of
from manyheads.submission import Source

REFUSED = ("ValueError", "Exception", "BaseException", "object")


def raised_on(source: Source, mark: str = "# here", bases: tuple[str, ...] = REFUSED) -> Raised:
    """Return the exception that the line with this comment raises.

    bases: the names of its type and of the base types.
    """
    line = next(i for i, text in enumerate(source.text.splitlines(), 1) if mark in text)
    return Raised(bases[0], bases, "8, 8", "call", line)


MODULE = Source(
    "attempt.py",
    """
class Base:
    def __init__(self, width):
        if width < 1:
            raise ValueError  # base

class Attention(Base):
    def __init__(self, width, heads, most):
        if width % heads:
            raise ValueError  # width
        self.most = most

    def forward(self, x, cache=None):
        B, T, C = x.shape
        k = self.keys(x)
        if T >= self.most:
            raise ValueError  # limit
        S = k.shape[1] + (0 if cache is None else cache.shape[1])
        if S > self.most:
            raise ValueError  # keys
        assert k.shape == x.shape  # own work
        assert S == T  # own count
        scores = k @ x.mT
        assert (scores > 0).all()  # numbers
        for head in k:
            if len(head) > self.most:
                raise ValueError  # in a loop
        raise ValueError  # always

    def helper(self, x):
        if x.shape[1] > self.most:
            raise ValueError  # helper

def rotate(x, base=2):
    if (hd := x.shape[-1]) % base:
        raise ValueError  # odd
    x = x.flip(-1)
    if len(x) == 3:
        raise ValueError  # turned
""",
)


@pytest.mark.parametrize(
    ("comment", "target", "is_guard"),
    [
        ("width", "Attention", True),
        ("limit", "Attention", True),
        ("keys", "Attention", True),
        ("own work", "Attention", False),
        ("own count", "Attention", False),
        ("numbers", "Attention", False),
        ("in a loop", "Attention", False),
        ("always", "Attention", False),
        ("helper", "Attention", False),
        ("base", "Attention", True),
        ("odd", "rotate", True),
        ("turned", "rotate", False),
        ("odd", "Attention", False),
    ],
)
def test_a_guard_compares_only_arguments(comment: str, target: str, is_guard: bool) -> None:
    assert (guard_of(MODULE, target, raised_on(MODULE, f"# {comment}")) is not None) is is_guard


@pytest.mark.parametrize(
    ("comment", "target", "divides"), [("width", "Attention", True), ("limit", "Attention", False)]
)
def test_a_guard_records_whether_it_checks_divisibility(
    comment: str, target: str, divides: bool
) -> None:
    guard = guard_of(MODULE, target, raised_on(MODULE, f"# {comment}"))
    assert guard.divides is divides


@pytest.mark.parametrize(
    ("guard", "is_inverted"),
    [
        pytest.param("if C % n == 0: raise ValueError", True, id="raises without a remainder"),
        pytest.param(
            "if not C % n: raise ValueError",
            True,
            id="raises without a remainder, written with not",
        ),
        pytest.param("assert C % n", True, id="asserts a remainder"),
        pytest.param("if C % n != 0: raise ValueError", False, id="raises with a remainder"),
        pytest.param(
            "if C % n: raise ValueError", False, id="raises with a remainder, without a comparison"
        ),
        pytest.param("assert C % n == 0", False, id="asserts no remainder"),
        pytest.param(
            "if C % n == 0: pass\n    else: raise ValueError", False, id="raises in the else branch"
        ),
    ],
)
def test_a_guard_with_an_inverted_condition_is_recognised(guard: str, is_inverted: bool) -> None:
    source = Source("attempt.py", f"def f(C, n):\n    {guard}\n")
    line = 3 if "else" in guard else 2
    exc_type = "AssertionError" if "assert" in guard else "ValueError"
    raised = Raised(exc_type, (exc_type, "Exception"), "", "call", line)
    parsed_guard = guard_of(source, "f", raised)
    assert parsed_guard.inverted is is_inverted


def test_another_exception_type_on_the_line_of_a_guard_is_no_guard() -> None:
    error = raised_on(MODULE, "# limit", ("RuntimeError", "Exception", "BaseException", "object"))
    assert guard_of(MODULE, "Attention", error) is None


def test_a_caller_fails_because_of_a_guard_only_if_the_guarded_function_fails_too() -> None:
    odd = raised_on(MODULE, "# odd")
    assert guards_of(MODULE, {1: ("rotate", odd), 2: ("scores", odd)}).keys() == {1, 2}
    assert guards_of(MODULE, {2: ("scores", odd)}) == {}
