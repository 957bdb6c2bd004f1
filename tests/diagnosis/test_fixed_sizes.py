"""Sizes that stand in an attempt's text: right there and wrong elsewhere is a hard-coded shape. The answers decide."""

from __future__ import annotations

import pytest
import torch
from manyheads.diagnosis.resize import layouts

from manyheads.box.worker.messages import Build, Call, StandIn
from manyheads.checks.implementation import LocalRunner
from manyheads.checks.local import LocalRecordingRunner
from manyheads.checks.transcript import Exchange
from manyheads.diagnosis.fixed_sizes import CALLS, OF_ALL, works_for_its_own_sizes, written_sizes
from manyheads.submission.notebook import CODE_LIMIT

REFERENCE = """
def paired(x, n):
    if x.shape[1] % n:
        raise ValueError("n does not divide")
    return x.unflatten(1, (n, -1)).sum(1) * n
"""


def namespace(text: str, **given: object) -> dict[str, object]:
    names = dict(given)
    exec(text, names)
    return names


def proved(text: str, **given: object) -> bool:
    subject, reference = LocalRecordingRunner(namespace(text, **given)), LocalRunner(namespace(REFERENCE))
    calls = [Call("paired", (torch.ones(rows, n * width).double(), n)) for rows, n, width in ((4, 3, 5), (2, 5, 7))]
    exchanges = [Exchange("check", call, subject.execute(call)) for call in calls]
    return works_for_its_own_sizes(subject, reference, exchanges, text)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("return x.unflatten(1, (6, -1)).view(len(x), n, -1).sum(1) * 6", True, id="one size"),
        pytest.param("return x.view(20, n, 9).sum(1) * n", True, id="two sizes, of which one stands in no argument"),
        pytest.param("return x.unflatten(1, (n, -1)).sum(1) * n", False, id="nothing is fixed"),
        pytest.param("return x.view(20, n, 9).sum(1)", False, id="a fixed size, and values that are wrong there too"),
        pytest.param("return x.view(len(x), n, n).sum(1) * n + 0 * 20", False, id="square alone, whatever the text says"),
        pytest.param("return x.view(len(x), n, len(x)).sum(1) * n + 0 * 4", False, id="a size that must be another's"),
        pytest.param("return x.view(len(x), n, -1).undefined + 20", False, id="always an exception"),
        pytest.param("raise ValueError('not for 20')", False, id="a refusal"),
    ],
)  # fmt: skip
def test_right_at_its_own_sizes_alone(body: str, expected: bool) -> None:
    assert proved(f"def paired(x, n):\n    {body}") is expected


def test_sizes_are_whole_numbers_of_the_code_that_runs() -> None:
    text = (
        "N = 64\ndef f(x):\n    return x.view(-7, 2.0, 1, True, 5000, 12)\nif __name__ == '__main__':\n    print(f(9))"
    )
    assert written_sizes(text) == [12, 64]
    assert written_sizes("def f(") == []
    assert written_sizes(text + "#" * CODE_LIMIT) == []  # a text of a megabyte takes the parser a gigabyte


def test_a_call_at_other_sizes_keeps_what_belongs_together() -> None:
    box = StandIn({"qkv": torch.ones(30, 10), "proj": torch.ones(10, 10)}, {"n_head": 2, "head_dim": 5})
    layout = next(layouts(Call("f", (box, torch.ones(4, 7, 10)), cotangent=torch.ones(4, 7, 10))))
    assert layout.axes == [2, 4, 5, 7]
    sizes = {2: 3, 4: 1, 5: 64, 7: 8}
    call = layout.at(sizes)
    given, x = call.args
    assert isinstance(given, StandIn)
    assert isinstance(x, torch.Tensor)
    assert (given.linears["qkv"].shape, x.shape, dict(given.attributes)) == (
        (576, 192),
        (1, 8, 192),
        {"n_head": 3, "head_dim": 64},
    )
    assert (call.cotangent, layout.numbers(sizes)) == (None, 576 * 192 + 192 * 192 + 8 * 192)


def test_a_size_may_be_a_multiple_of_one_that_is_given() -> None:
    build = Build("Layer", (15, 3), {"dropout": 0.5}, state={"weight": torch.ones(15, 15)})
    ways = list(layouts(Call(build, (torch.ones(2, 15),))))
    assert [way.axes for way in ways] == [[2, 3, 15], [2, 3, 5]]
    subject = ways[1].at({2: 7, 3: 4, 5: 6}).subject
    assert isinstance(subject, Build)
    assert (subject.args, dict(subject.kwargs)) == ((24, 4), {"dropout": 0.5})


def test_a_text_full_of_numbers_is_no_work() -> None:
    numbers = ", ".join(map(str, range(2, 129)))
    asked: list[int] = []
    text = f"def paired(x, n):\n    asked.append(x.numel())\n    return x.view(*[{numbers}])"
    assert not proved(text, asked=asked)
    assert CALLS <= len(asked) < CALLS + 20  # and a few that show at which sizes it is wrong
    assert sum(asked) <= OF_ALL
    assert len(written_sizes(f"f({numbers})")) == 16
