"""A guard of the student's own is known by what it compares: sizes of its arguments, or a limit,
and no result of the code.
"""

import pytest

from manyheads.box.worker.messages import Raised
from manyheads.diagnosis.evidence import guard_of, guards_of
from manyheads.submission import Source

REFUSED = ("ValueError", "Exception", "BaseException", "object")


def raised_on(source: Source, mark: str = "# here", bases: tuple[str, ...] = REFUSED) -> Raised:
    """What the marked line raises."""
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
    ("mark", "target", "is_guard"),
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
def test_what_a_guard_compares_is_its_arguments(mark: str, target: str, is_guard: bool) -> None:
    assert (guard_of(MODULE, target, raised_on(MODULE, f"# {mark}")) is not None) is is_guard


@pytest.mark.parametrize(
    ("mark", "target", "divides"), [("width", "Attention", True), ("limit", "Attention", False)]
)
def test_a_guard_says_whether_it_divides(mark: str, target: str, divides: bool) -> None:
    guard = guard_of(MODULE, target, raised_on(MODULE, f"# {mark}"))
    assert guard.divides is divides


@pytest.mark.parametrize(
    ("guard", "is_inverted"),
    [
        pytest.param(
            "if C % n == 0: raise ValueError", True, id="raises where nothing is left over"
        ),
        pytest.param("if not C % n: raise ValueError", True, id="the same with not"),
        pytest.param("assert C % n", True, id="asserts that something is left over"),
        pytest.param(
            "if C % n != 0: raise ValueError", False, id="raises where something is left over"
        ),
        pytest.param("if C % n: raise ValueError", False, id="the same without a comparison"),
        pytest.param("assert C % n == 0", False, id="asserts that nothing is left over"),
        pytest.param(
            "if C % n == 0: pass\n    else: raise ValueError", False, id="raises in the other case"
        ),
    ],
)
def test_a_guard_the_wrong_way_round_is_seen(guard: str, is_inverted: bool) -> None:
    source = Source("attempt.py", f"def f(C, n):\n    {guard}\n")
    line = 3 if "else" in guard else 2
    exc_type = "AssertionError" if "assert" in guard else "ValueError"
    raised = Raised(exc_type, (exc_type, "Exception"), "", "call", line)
    parsed_guard = guard_of(source, "f", raised)
    assert parsed_guard.inverted is is_inverted


def test_another_exception_on_its_line_is_none() -> None:
    error = raised_on(MODULE, "# limit", ("RuntimeError", "Exception", "BaseException", "object"))
    assert guard_of(MODULE, "Attention", error) is None


def test_who_calls_a_function_meets_its_guard_only_where_that_refuses_what_is_allowed() -> None:
    odd = raised_on(MODULE, "# odd")
    assert guards_of(MODULE, {1: ("rotate", odd), 2: ("scores", odd)}).keys() == {1, 2}
    assert guards_of(MODULE, {2: ("scores", odd)}) == {}
