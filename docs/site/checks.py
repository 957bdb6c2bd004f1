"""Make the page of what checks ask and assert, from the docstrings. Run: python -m
docs.site.checks > docs/checks.md.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from manyheads import checks
from manyheads.box.worker.messages import Call
from manyheads.checks import Layer
from manyheads.checks.answer import Answer
from manyheads.checks.hidden_check import Draw
from manyheads.checks.runner import CallSequence, Implementation, ImplementationModule

HEAD = '''\
# What checks ask and assert

This page is made from the docstrings: `python -m docs.site.checks > docs/checks.md`. \
[writing-exercises.md](writing-exercises.md)
shows all of it at work. A check is a function with some of the arguments `attempt`, `reference` \
and `draw`, and with
fixtures of its file or of the conftest.py beside it:

```python
def split_oracle(x, n_head):
    """Return each head as a slice of the channels: no view, no transpose."""
    hd = x.shape[-1] // n_head
    return torch.stack([x[..., h * hd : (h + 1) * hd] for h in range(n_head)], dim=1)


@pytest.fixture
def sizes(draw):
    return draw.sizes(B=[7], T=[9, 11], nh=[5], hd=[6])


@check(points=1.25, layer="values", hint="Which axis must be unpacked first?")
def test_split_values(attempt, draw, sizes):
    """splits channels into heads"""
    x = draw(sizes.B, sizes.T, sizes.nh * sizes.hd)
    assert_matches(attempt.split_heads(x, sizes.nh), split_oracle(x, sizes.nh))


CONTRACT = function_contract(arguments, points=0.25)
```

Students read the docstring of a check as its title. A fixture returns its value, which is the \
same throughout one check.
Its arguments are other fixtures, or `request`, of which `request.module` is the file of the \
check. The checks of the list
`CONTRACT` are collected where it stands. The conftest.py of this course declares `sizes` (drawn \
from the file's `SIZES`), and
`weights` and `x` (of the file's `MODULE`).
'''
# Fields of a call that the methods of an implementation set.
NOT_ASKED = {"subject", "args", "kwargs", "only_build", "arrays", "returns", "then"}
ASSERTS = [name for name in checks.__all__ if name.startswith(("assert_", "expect"))]
OTHERS = [
    "ComparedWithModule",
    "Evidence",
    "Mutant",
    "Number",
    "OperationLimit",
    "PlantedDifference",
    "Sizes",
    "agrees",
    "replace_sizes",
    "changed_positions",
    "check",
    "edit",
    "function_contract",
    "module_contract",
    "relative_change",
    "moved_after_a_call",
]


def checks_page() -> str:
    """Return the page."""
    lines = [HEAD, "## `attempt` and `reference`", "", _text(Implementation), ""]
    lines += [
        *_methods(
            "attempt", Implementation, ["call", "module", "sequence", "with_options", "device"]
        ),
        *_options(),
    ]
    lines += [
        "## A module: `attempt.CausalAttention(…)`",
        "",
        _text(ImplementationModule),
        "",
        *_methods("module", ImplementationModule),
    ]
    lines += ["## Several calls: `sequence()`", "", *_methods("calls", CallSequence)]
    lines += [
        "## An answer",
        "",
        _text(Answer),
        "",
        *_methods("answer", Answer, leave_out=("form", "wrong_type", "output_index", "returned")),
    ]
    lines += ["## `draw`", "", _text(Draw), "", *_methods("draw", Draw)]
    lines += [
        "## Asserts",
        "",
        *(line for name in ASSERTS for line in _function(name, getattr(checks, name))),
    ]
    lines += [
        "## Other names",
        "",
        *(line for name in OTHERS for line in _function(name, getattr(checks, name))),
    ]
    layers = ", ".join(f"`Layer.{layer.name}`" for layer in Layer)
    lines += ["### `Layer`", "", f"{_text(Layer)} There are {layers}.", ""]
    return "\n".join(lines)


def _options() -> Iterator[str]:
    """Yield the table of what `with_options` sets: the fields of a call, with the words of their
    comments or of the docstring.
    """
    yield from ("| `with_options(…=…)` | default | |", "|---|---|---|")
    source = inspect.getsource(Call)
    for field in fields(Call):
        if field.name not in NOT_ASKED:
            yield f"| `{field.name}` | `{field.default!r}` | {_words_of(field.name, source)} |"
    yield ""


def _words_of(name: str, source: str) -> str:
    """Return what the source of a class says of a field. Raises LookupError if that is nothing."""
    comment = re.search(rf"^    {name}: .*?  # (.+)$", source, re.MULTILINE)
    above = re.search(rf"((?:^    # .+\n)+)    {name}: ", source, re.MULTILINE)
    paragraph = re.search(
        rf"^ +{name}: (.+?)(?=^ +\w+: |^\s*$|^    \"\"\")", source, re.MULTILINE | re.DOTALL
    )
    match = comment or above or paragraph
    if match is None or " = " in match[1]:
        raise LookupError(f"nothing is said of {name}")
    return " ".join(match[1].replace("    # ", "").split()).replace("|", "\\|")


def _methods(
    variable: str, owner: type, names: list[str] | None = None, leave_out: tuple[str, ...] = ()
) -> Iterator[str]:
    """Yield the public methods and properties of a class, as a check that calls the object
    `variable` writes them.
    """
    for name in names or _public(owner):
        member: Any = vars(owner)[name]
        if name in leave_out or not getattr(member, "__doc__", None):
            continue
        if isinstance(member, property):
            yield from (f"### `{variable}.{name}`", "", _text(member), "")
        elif name == "__call__":
            yield from (f"### `{variable}{_signature(member)}`", "", _text(member), "")
        elif name == "__getitem__":
            yield from (f"### `{variable}[…]`", "", _text(member), "")
        else:
            yield from (f"### `{variable}.{name}{_signature(member)}`", "", _text(member), "")


def _public(owner: type) -> list[str]:
    special = ("__call__", "__getitem__")
    members = {
        name: member
        for name, member in vars(owner).items()
        if callable(member) or isinstance(member, property)
    }
    return [name for name in members if name in special or not name.startswith("_")]


def _function(name: str, function: Any) -> Iterator[str]:
    yield from (f"### `{name}{_signature(function)}`", "", _text(function), "")


def _signature(function: Any) -> str:
    """Return the names of the arguments, with their defaults."""
    signature = inspect.signature(function)
    plain = [
        parameter.replace(annotation=parameter.empty)
        for parameter in signature.parameters.values()
        if parameter.name != "self"
    ]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))


def _text(documented: object) -> str:
    """Return a docstring as Markdown: its sections as lists."""
    lines = inspect.cleandoc(getattr(documented, "__doc__", "") or "").splitlines()
    text, section = list[str](), ""
    for line in lines:
        item = re.match(r"( {4})?(\*?[a-z]\w*|[A-Z]\w*Error): (.*)", line)
        if line in ("Args:", "Attributes:", "Raises:"):
            section = line
        elif item and bool(item[1]) == bool(section):
            if text and text[-1] and not text[-1].startswith(("- ", "  ")):
                text.append("")  # Markdown wants it before a list
            text.append(f"- {'raises ' if section == 'Raises:' else ''}`{item[2]}`: {item[3]}")
        elif section and line:
            text.append(f"  {line.strip()}")
        else:
            text.append(line)
    return "\n".join(text).strip()


if __name__ == "__main__":
    print(checks_page(), end="")
