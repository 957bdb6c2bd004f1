"""The usual cure of an exception: each snippet really raises it, and without its row the table is silent or says another."""

import math
import time

import pytest
import torch
from torch import nn

from manyheads.box.worker.answers import Raised
from manyheads.box.worker.execute import raised_by
from manyheads.judge import cures
from manyheads.judge.cures import LONGEST, cure

GIVEN = {
    "torch": torch, "math": math, "nothing": None, "d": 12,
    "x": torch.randn(2, 5, 12), "q": torch.randn(2, 9, 4), "k": torch.randn(2, 13, 4), "s": torch.randn(2, 5, 5),
    "m": torch.ones(5, 5).tril(), "mask": torch.ones(5, 5).tril().bool(), "layer": nn.Linear(7, 3),
    "w": nn.Parameter(torch.ones(3, 3)), "heads": nn.ModuleList([nn.Linear(12, 3)]),
}  # fmt: skip
# Lines of a function, of which one raises, by what is said of it.
LINES = {
    "`import torch.nn.functional as F` at the top": ["F.softmax(s, dim=-1)"],
    "`import numpy as np`": ["np.sqrt(d)"],
    "`from torch import nn`": ["nn.Linear(2, 2)"],
    "`import einops`": ["einops.rearrange(x, 'b t c -> t b c')"],
    "`from einops import rearrange`": ["rearrange(x, 'b t c -> t b c')"],
    "`self` is the first argument of a method": ["self.n_head"],
    "dim=-1 is the last one": ["torch.softmax(s)", "s.softmax()"],
    "PyTorch calls the axis dim": ["torch.nn.functional.softmax(s, axis=-1)"],
    ".permute names all": ["x.transpose(1)", "x.transpose(0, 2, 1)"],
    ".permute names every axis": ["x.permute(0, 3, 1, 2)", "x.permute(0, 1, 1)"],
    "number ** 0.5": ["s / torch.sqrt(d)", "s / torch.sqrt(4.0)"],
    "math.exp": ["s / torch.exp(d)"],
    "math takes one number": ["s / math.sqrt(x)"],
    "if key not in table": ["{'small': 12}['huge']"],
    "`//` a whole number": [
        "x.view(2, 5, 3, d / 3)", "x.reshape((2, 5, d / 3, 3))", "x.split(d / 3, dim=-1)", "x.chunk(d / 4, dim=-1)",
        "torch.nn.Linear(d, d / 3)", "torch.nn.Linear(d / 3, d)", "[h for h in range(d / 3)]", "x[:, :, : d / 3]", "x[0, 0, d / 3]",
        "torch.ones(d / 3, d)", "torch.zeros(d / 3)", "x.unflatten(-1, (3, d / 3))",
    ],
    "write .reshape(…)": ["x.transpose(1, 2).view(2, 60)"],
    "`.T` turns all the axes around": ["x @ x.T", "q @ k.T / 2"],
    "with keepdim=True it stays": [
        "s = s[0]\ns / x.sum(-1)", "s / torch.sum(x, dim=-1)", "total = x.sum(dim=-1)\nx / total", "x - x.exp().mean(-1)",
        "e = s[:, :4]\nm = e.max(-1)[0]\n(e - m).exp()",
    ],
    "the keys are not transposed": ["q @ k", "torch.matmul(q[0], k)", "k_h = k[0]\nq[0] @ k_h / 2", "torch.bmm(q, k)"],
    "nn.Linear(a, b) takes": ["layer(q)", "[layer(h) for h in (q, q)]"],
    "In a @ b the last axis of a": ["k @ x[0]", "q @ s", "q[0] @ x[0]", "w @ mask.float()"],
    "Is the mask cut to this T": ["class A: mask = torch.ones(9, 9).bool()\nself = A()\ns.masked_fill(~self.mask, 0.0)"],
    "Axes meet from the last one on": ["s + torch.ones(7, 7)", "s.masked_fill(torch.ones(7, 7).bool(), 0.0)"],
    "the number of elements that there are": ["x.view(2, 5, 3, 5)", "x.reshape(2, 5, -1, 5)", "x.unflatten(-1, (3, 5))"],
    "have to add up to the axis": ["x.split([5, 5], dim=-1)"],
    "torch.cat joins along dim": ["torch.cat([x, s], dim=-2)", "torch.cat([x, s[0]], dim=-1)"],
    "Axes are counted from 0": ["x.transpose(1, 3)", "x.softmax(dim=3)", "x.shape[3]", "x.size(3)"],
    "more places in the [ ]": ["x[0, 0, 0, 0]"],
    "has the places 0 to n - 1": ["x[7]", "x[:, 5]"],
    "`*_, T, d = x.shape`": ["B, nh, T, d = x.shape", "T, d = x.size()"],
    "They are x.shape": ["B, T, C = x", "B, T, C, d = s"],
    "take .values": ["x - x.max(-1)", "x.max(dim=-1, keepdim=True).exp()", "x.topk(2).shape"],
    "A comma at the end": ["y = x,\ny @ x", "y = x,\ny.shape", "x @ (x, x)", "layer((x, x))"],
    "makes one tensor of a list": ["[x, x].transpose(1, 2)", "layer([x])", "[x][0, 0]"],
    "torch.cat([a, b], dim=-1)": ["torch.cat(x, x)", "torch.cat(x, x, x)"],
    "torch.stack([a, b], dim=-1)": ["torch.stack(x, x)"],
    "Sizes stand in square brackets": ["x.shape(-1)"],
    "x.shape[-1] is the last one": ["s / x.shape ** 0.5", "math.sqrt(x.shape)", "torch.sqrt(x.shape)", "2 / x.size()"],
    "Round brackets call": ["x(1)", "d(x)", "s / 2 (x)"],
    "range(number) can": ["for h in d: pass"],
    "`.size`, written on line 2, is not called": ["x.size[-1]", "x / x.size"],
    "`.transpose`, written on line 2, is not called": ["q @ k.transpose"],
    "self.layer(x) is the tensor": ["x @ layer", "layer @ x", "layer.view(3)", "layer[0]"],
    "[head(x) for head in self.heads]": ["heads(x)"],
    "`is not None` asks": ["if mask: pass", "y = x if mask else s", "if not mask: pass"],
    "&, | and ~": ["y = mask and mask", "y = s > 0 or mask"],
    "NumPy knows no gradients": ["w.numpy()", "s.numpy() @ s"],
    "Each letter stands for one length": ["torch.einsum('btd,bsd->bts', q, k[..., :3])"],
    "a letter for each of its axes": ["torch.einsum('btd,bsd->bts', q[0], k)"],
    "~mask turns": ["1 - mask", "-mask"],
    "this is a bool tensor": ["mask.softmax(-1)", "mask @ mask", "mask.mean()", "mask @ m"],
    "These are whole numbers": ["torch.arange(5).softmax(0)", "torch.arange(5).mean()"],
    "becomes a bool one": ["s.masked_fill(m, 0.0)", "torch.where(m, s, 0.0)", "~m", "m & m", "s[0][m]"],
    'write float("-inf")': ["s.masked_fill(m == 0, '-inf')"],
    "What to fill in is missing": ["s.masked_fill(mask)", "s.masked_fill(mask=mask)"],
    "Whole numbers have no −∞": ["torch.ones(5, 5).long().masked_fill(mask, float('-inf'))"],
    "Make a new tensor": ["w += 1", "w.masked_fill_(w > 0, 0.0)", "w[0] = 1", "y = w.exp()\ny *= 2\ny.sum().backward()"],
    "dtype=x.dtype and .to(x.dtype)": ["q @ k.double().mT", "s[0] @ m.double()", "layer(torch.ones(3, 7).double())"],
    "x.device is the input's own": ["x.cuda()", "torch.ones(3, device='cuda')"],
    "with device=x.device, and keep it": ["x + torch.ones(12, device='meta')", "s.masked_fill(mask.to('meta'), 0.0)"],
    "`@` takes any number of axes": ["torch.bmm(q[0], k)", "torch.mm(q, k)", "torch.dot(x, x)"],
    "exchanges the last two of any number": ["x.t()"],
    "mask or is_causal=True": [
        "torch.nn.functional.scaled_dot_product_attention(s, s, s, attn_mask=mask, is_causal=True)"
    ],
}  # fmt: skip
# Whole files, by what is said of them.
FILES = {
    "`y` is bound in another branch, written on line 3": ["def f(a=0):\n    if a:\n        y = 1\n    else:\n        pass\n    return y"],
    "`y` is bound in a loop that did not run, written on line 3": ["def f(a=0):\n    for i in range(a):\n        y = 1\n    return y"],
    "written on line 5, takes the name of g": ["def g(a):\n    return a\n\ndef f(a=0):\n    g = g(a)\n    return g"],
    "Its first value is written on line 2: is a line missing": ["def f():\n    total += 1", "def f(a=0):\n    y = y / 2\n    return y"],
    "`g`, written on line 1, ends without a `return`": [
        "def g(a):\n    b = a + 1\n\ndef f():\n    return g(1) @ x",
        "def g(a):\n    print(a)\n\ndef f():\n    return torch.softmax(g(1), dim=-1)",
        "def g(a):\n    if not a:\n        return x\n\ndef h(a):\n    return a.shape\n\ndef f():\n    return h(g(1))",
    ],
    "written on line 2 is the wrong way round: `keep is not None`": [
        f"def f(keep=None):\n    if {test}:\n        return ~keep[:, None]\n    return keep"
        for test in ("keep is None", "keep == None", "not keep")
    ],
    "`keep` is None where it is not given": ["def f(keep=None):\n    return ~keep[:, None]"],
    "Is `self` the method's first argument": ["class A:\n    def forward(x):\n        return x\n\ndef f():\n    return A().forward(x)"],
    "super().__init__() is the first line": ["from torch import nn\nclass A(nn.Module):\n    def __init__(self):\n        self.a = nn.Linear(2, 2)\n\ndef f():\n    A()"],
    "register_buffer returns nothing": [
        "from torch import nn\nclass A(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.register_buffer('m', mask).view(5, 5)\n\ndef f():\n    A()"
    ],
    "take out the other line": [
        "from torch import nn\nclass A(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.m = mask\n        self.register_buffer('m', mask)\n\ndef f():\n    A()"
    ],
    "`g`, written on line 5, is not called there: write g(…)": ["def g():\n    return x\n\ndef f():\n    return g.shape"],
    "Did you mean transpose, where it says trasnpose?": ["def f():\n    return x.trasnpose(0, 1)"],
    "Did you mean arange, where it says arrange?": ["def f():\n    return torch.arrange(3)"],
    "Did you mean softmax, where it says sofmax?": ["import torch.nn.functional as F\ndef f():\n    return F.sofmax(x)"],
    "Did you mean query, where it says quary?": ["def f(query=0):\n    return quary"],
    "Did you mean range, where it says rnage?": ["def f():\n    return rnage(3)"],
    **{
        f"Did you mean W_query, where it says {name}?": [
            f"from torch import nn\nclass A(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.W_query = 1\n\ndef f():\n    A().{name}"
        ]
        for name in ("W_qurey", "w_query")
    },
    "nested too deeply": ["x = " + "(" * 300 + ")" * 300],
}  # fmt: skip
# What is like one of them, and of which nothing is known.
NOTHING = {
    "a name that the file imports": "if d == 0:\n    import torch.nn.functional as F\ndef f():\n    F.softmax(x, dim=-1)",
    "a softmax of the file's own": "def softmax(a, dim):\n    return a\ndef f():\n    softmax(x, axis=torch.e)",
    "a missing argument of the file's own": "def g(a):\n    return a\ndef f():\n    g()",
    "None out of nowhere": "def f():\n    return nothing @ x",
    "None that is asked about": "def f(keep=None):\n    if keep is not None:\n        keep = 1\n    return keep @ x",
    "a value that is deleted": "def f():\n    y = 1\n    del y\n    return y",
    "a value that failed": "def f():\n    try:\n        y = 1 / 0\n    except ZeroDivisionError:\n        pass\n    return y",
    "a product whose leading axes differ": "def f():\n    return torch.ones(2, 3, 5, 7) @ torch.ones(2, 4, 7, 5)",
    "a dropout of a tensor": "def f():\n    torch.nn.Dropout(x)",
    "a refusal": "def f():\n    raise ValueError('12 is no multiple of 5: view size is not compatible')",
    "a division by zero": "def f():\n    1 / 0",
    "a part too many of a split": "def f():\n    x.split(4, dim=-1)[3]",
    "a name that is near to none": "def f():\n    x.zzzzz",
    "a name of another module": "import os\ndef f():\n    os.getcwdd()",
    "an exception of its own": "class KeyErrors(Exception): pass\ndef f():\n    raise KeyErrors('x')",
}


def raised(source: str) -> Raised:
    """What the file raises, or its f."""
    with pytest.raises(Exception) as caught:  # noqa: PT012
        names = dict(GIVEN)
        exec(compile(source, "attempt.py", "exec"), names)
        names["f"]()
    return raised_by(caught.value, "call", "attempt.py")


def of_lines(lines: str) -> str:
    *before, last = lines.split("\n")
    names = "def f(x=x, s=s, m=m, w=w):"
    last = last if last.startswith(("for", "if")) or "=" in last.split("(")[0] else f"return {last}"
    return "\n    ".join([names, *before, last])


ROWS = [(said, of_lines(each)) for said, every in LINES.items() for each in every]
ROWS += [(said, each) for said, every in FILES.items() for each in every]


@pytest.mark.parametrize(("said", "source"), ROWS, ids=[f"{said}: {source[-40:]}" for said, source in ROWS])
def test_what_is_raised_has_its_usual_cure(said: str, source: str) -> None:
    assert said in cure(source, raised(source))


@pytest.mark.parametrize("source", [pytest.param(source, id=name) for name, source in NOTHING.items()])
def test_of_what_is_only_like_it_nothing_is_said(source: str) -> None:
    assert cure(source, raised(source)) == ""


def test_every_row_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = cures.table()
    seen = [(said, source, raised(source)) for said, source in ROWS]
    for row in whole:
        monkeypatch.setattr(cures, "table", lambda row=row: {each: whole[each] for each in whole if each is not row})
        assert any(said not in cure(source, what) for said, source, what in seen), row.pattern


def test_another_line_or_none_shows_nothing() -> None:
    source = "def f(q, k):\n    k = k.trasnpose(0, 1)\n    return q @ k\n"
    for line in (None, 3, 9):
        assert (
            cure(source, Raised("AttributeError", (), "'Tensor' object has no attribute 'trasnpose'", "call", line))
            == ""
        )


def test_an_attempt_does_not_choose_the_word() -> None:
    """It may raise what it likes: only a name that stands on the line is looked up, or repeated."""
    for word in ("arange", "softmaxx", "secret_0123", "x" * 10_000):
        for said in (f"'Tensor' object has no attribute '{word}'", f"name '{word}' is not defined"):
            assert word not in cure("def f(): g()\n", Raised("AttributeError", (), said, "call", 1))
    long = "x" * (LONGEST + 1)
    assert (
        cure(
            f"def f(): x.{long}e\n",
            Raised("AttributeError", (), f"'Tensor' object has no attribute '{long}'", "call", 1),
        )
        == ""
    )


@pytest.mark.parametrize(
    "repeated", ["a", " ", "'", "x - ", "@ k", ".T", "s/x.sum(", "'tuple' and ", "\n", "m = x.max(", "["]
)
def test_a_long_text_takes_no_long_time(repeated: str) -> None:
    source = f"def f(x):\n    total = {repeated * 9000}\n    {repeated * 9000}\n"
    started = time.process_time()
    for type_ in ("RuntimeError", "TypeError", "ValueError", "IndexError"):
        for said in ("", "The size of tensor a ", "Boolean value of Tensor ", "mat1 and mat2 sh", "only integers, "):
            cure(source, Raised(type_, (type_,), f"{said}{repeated * 2000}", "call", 3))
    assert time.process_time() - started < 4
