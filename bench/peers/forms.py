"""The list of checks, written out for graders that run checks beside the attempt, and for our own judge."""

from __future__ import annotations

import re
from textwrap import indent

from ..assignment import Assignment
from .checks import CHECKS, FUNCTIONS, NAME, RIGHT, Check, Kind

ALLCLOSE = "assert torch.allclose(got, want)"
ASSERT_CLOSE = "torch.testing.assert_close(got, want)"

_BARE = {
    Kind.SHAPE: "assert {f}(*a).shape == want_{f}(*a).shape\n",
    Kind.DTYPE: "assert {f}(*a).dtype == want_{f}(*a).dtype\n",
    Kind.VALUES: "got, want = {f}(*a), want_{f}(*a)\n{agree}\n",
    Kind.GRADIENTS: """\
x = [each.requires_grad_() for each in a if isinstance(each, torch.Tensor)]
answer = want_{f}(*a)
g = torch.randn_like(answer)
for got, want in zip(torch.autograd.grad({f}(*a), x, g), torch.autograd.grad(answer, x, g)):
    {agree}
""",
    Kind.REFUSED: """\
{f}(a[0][..., :6], a[1])
try:
    {f}(*a)
except (ValueError, AssertionError):
    pass
else:
    raise AssertionError("accepted in silence")
""",
}
_JUDGED = {
    Kind.SHAPE: 'assert_shape(attempt.call("{f}", *a), reference.call("{f}", *a).output.shape)\n',
    Kind.DTYPE: 'expect(attempt.call("{f}", *a).dtype == reference.call("{f}", *a).dtype, "another dtype")\n',
    Kind.VALUES: 'assert_matches(attempt.call("{f}", *a), reference.call("{f}", *a))\n',
    Kind.GRADIENTS: """\
g = draw(*reference.call("{f}", *a).output.shape)
got, want = (candidate.asking(cotangent=g).call("{f}", *a) for candidate in (attempt, reference))
assert_gradients_match(got, want, {names})
""",
    Kind.REFUSED: """\
attempt.call("{f}", a[0][..., :6], a[1]).must_return()
assert_refused(attempt.call("{f}", *a), "an indivisible size")
""",
}
_HEAD = '''\
"""Hidden checks of the six functions."""

from manyheads.checks import Layer, assert_gradients_match, assert_matches, assert_refused, assert_shape, check, expect
'''
_LAYERS = {
    Kind.SHAPE: "SHAPE",
    Kind.DTYPE: "HYGIENE",
    Kind.VALUES: "VALUES",
    Kind.GRADIENTS: "GRADIENTS",
    Kind.REFUSED: "HYGIENE",
}


def assignment(agree: str = ALLCLOSE) -> Assignment:
    """For a grader without a box. `agree`: the statement that compares got with want."""
    setup = re.sub(r"^def (\w+)", r"def want_\1", RIGHT, flags=re.MULTILINE)
    return Assignment(NAME, FUNCTIONS, setup, {check.id: _bare(check, agree) for check in CHECKS})


def hidden_checks() -> str:
    """The file of hidden checks for `course grade`."""
    return _HEAD + "".join(
        f"\n\n@check(points=1, layer=Layer.{_LAYERS[c.kind]})\n"
        f"def test_{c.id}(attempt, reference, draw):\n"
        f'    """{c.function}: {c.kind}"""\n{indent(_judged(c), "    ")}'
        for c in CHECKS
    )


def _bare(check: Check, agree: str) -> str:
    return _drawn(check, "torch.randn({}, dtype=torch.float64)") + _BARE[check.kind].format(
        f=check.function, agree=agree
    )


def _judged(check: Check) -> str:
    names = ", ".join(f'"args.{i}"' for i, argument in enumerate(check.arguments) if isinstance(argument, tuple))
    return _drawn(check, "draw({})") + _JUDGED[check.kind].format(f=check.function, names=names)


def _drawn(check: Check, tensor: str) -> str:
    drawn = [
        tensor.format(", ".join(map(str, argument))) if isinstance(argument, tuple) else str(argument)
        for argument in check.arguments
    ]
    return f"a = [{', '.join(drawn)}]\n"
