"""Eighteen checks of six functions, a point each, in two forms: plain statements, and hidden checks
of our own judge.
"""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import indent

NAME = "six_functions"
RIGHT = Path(__file__).with_name(f"{NAME}.py").read_text(encoding="utf-8")
WRONG = RIGHT.replace(".tril()", ".triu()").replace("y.transpose(1, 2).reshape", "y.reshape")
WRONG_EARNS = 15  # all but the mask's values, and the merge's values and gradients

# A function, what is compared, and the arguments: random float64 tensors of these shapes, and
# integers.
CHECKS: tuple[tuple[str, str, tuple[tuple[int, ...] | int, ...]], ...] = (
    ("attention_scores", "shape", ((2, 3, 4, 5), (2, 3, 6, 5))),
    ("attention_scores", "values", ((3, 7, 5), (3, 4, 5))),
    ("attention_scores", "gradients", ((2, 7, 3), (2, 4, 3))),
    ("attention_weights", "shape", ((2, 3, 4, 5),)),
    ("attention_weights", "values", ((3, 7, 5),)),
    ("attention_weights", "gradients", ((2, 7, 3),)),
    ("attend", "shape", ((2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7))),
    ("attend", "values", ((3, 7, 5), (3, 4, 5), (3, 4, 6))),
    ("attend", "gradients", ((2, 7, 3), (2, 4, 3), (2, 4, 5))),
    ("causal_mask", "shape", (5,)),
    ("causal_mask", "dtype", (6,)),
    ("causal_mask", "values", (7,)),
    ("split_heads", "values", ((2, 5, 12), 3)),
    ("split_heads", "gradients", ((2, 4, 6), 3)),
    ("split_heads", "refused", ((2, 5, 7), 3)),
    ("merge_heads", "shape", ((2, 3, 5, 4),)),
    ("merge_heads", "values", ((2, 4, 6, 3),)),
    ("merge_heads", "gradients", ((2, 3, 4, 5),)),
)
# the right answers, for plain statements
SETUP = re.sub(r"^def (\w+)", r"def want_\1", RIGHT, flags=re.MULTILINE)
_PLAIN = {
    "shape": "assert {f}(*a).shape == want_{f}(*a).shape\n",
    "dtype": "assert {f}(*a).dtype == want_{f}(*a).dtype\n",
    "values": "assert torch.allclose({f}(*a), want_{f}(*a))\n",
    "gradients": """\
x = [each.requires_grad_() for each in a if isinstance(each, torch.Tensor)]
answer = want_{f}(*a)
g = torch.randn_like(answer)
for got, want in zip(torch.autograd.grad({f}(*a), x, g), torch.autograd.grad(answer, x, g)):
    assert torch.allclose(got, want)
""",
    "refused": """\
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
    "shape": 'assert_shape(attempt.call("{f}", *a), reference.call("{f}", *a).output.shape)\n',
    "dtype": (
        'expect(attempt.call("{f}", *a).dtype == reference.call("{f}", *a).dtype, "another '
        'dtype")\n'
    ),
    "values": 'assert_matches(attempt.call("{f}", *a), reference.call("{f}", *a))\n',
    "gradients": """\
g = draw(*reference.call("{f}", *a).output.shape)
got, want = (c.with_options(cotangent=g).call("{f}", *a) for c in (attempt, reference))
assert_gradients_match(got, want, {names})
""",
    "refused": """\
attempt.call("{f}", a[0][..., :6], a[1]).must_return()
assert_refused(attempt.call("{f}", *a), "an indivisible size")
""",
}
_LAYERS = {
    "shape": "SHAPE",
    "dtype": "HYGIENE",
    "values": "VALUES",
    "gradients": "GRADIENTS",
    "refused": "HYGIENE",
}
_IMPORTS = (
    "from manyheads.checks import Layer, assert_gradients_match, assert_matches, "
    "assert_refused, assert_shape, check, expect\n"
)


def plain() -> dict[str, str]:
    """Return the statements of each check, by its name. They need SETUP and the attempt's
    functions.
    """
    return {
        f"{f}_{check_kind}": _draw_arguments(arguments, "torch.randn({}, dtype=torch.float64)")
        + _PLAIN[check_kind].format(f=f)
        for f, check_kind, arguments in CHECKS
    }


def hidden_checks_file() -> str:
    """Return the file of hidden checks for `course grade`."""
    blocks = [_IMPORTS]
    for f, check_kind, arguments in CHECKS:
        names = ", ".join(
            f'"args.{i}"' for i, argument in enumerate(arguments) if isinstance(argument, tuple)
        )
        body = _draw_arguments(arguments, "draw({})") + _JUDGED[check_kind].format(f=f, names=names)
        head = (
            f"@check(points=1, layer=Layer.{_LAYERS[check_kind]})\n"
            f"def test_{f}_{check_kind}(attempt, reference, draw):\n"
        )
        blocks.append(f'{head}    """{f}: {check_kind}"""\n{indent(body, "    ")}')
    return "\n\n".join(blocks)


def _draw_arguments(arguments: tuple[tuple[int, ...] | int, ...], tensor: str) -> str:
    drawn = [
        tensor.format(", ".join(map(str, a))) if isinstance(a, tuple) else str(a) for a in arguments
    ]
    return f"a = [{', '.join(drawn)}]\n"
