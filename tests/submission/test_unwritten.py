"""A file in which nothing is written is known by its text, in whatever way it says nothing."""

import pytest

from manyheads.submission.source_text import CODE_LIMIT
from manyheads.submission.unwritten import LeftOver, is_unwritten, left_over_raise, unwritten_names
from tests.make import REPOSITORY

STUBS = sorted(REPOSITORY.glob("exercises/*/*.py"))
WRITTEN = sorted([*REPOSITORY.glob("solutions/*/*.py"), *REPOSITORY.glob("grader/right/*/*.py")])
WRITTEN += sorted(REPOSITORY.glob("grader/wrong/*/*.py"))

NOTHING = ["pass", '"""The mean."""', "...", "return", "return None", "raise NotImplementedError", 'raise NotImplementedError("later")', '"""The mean."""\n    pass']  # fmt: skip
MODULE = "from torch import nn\n\n\nclass Head(nn.Module):\n"
EMPTY = {
    "a class": f"{MODULE}    pass\n",
    "methods": f"{MODULE}    def __init__(self, n):\n        super().__init__()\n\n    def forward(self, x):\n        pass\n",
    "the parent named": f"{MODULE}    def __init__(self, n):\n        super(Head, self).__init__()\n",
    "nothing at all": "",
    "remarks": "# Attention scores\n\n    # later\n",
    "a demonstration": 'def mean(x):\n    pass\n\n\nif __name__ == "__main__":\n    def show(x):\n        print(x)\n',
}
SOMETHING = {
    "a parent of a very long name": f"class A(a{'.b' * 900}):\n    pass\n",
    "a parent that is no name": "class A(f()):\n    pass\n",
    "no function": "import torch\n",
    "no Python": "def mean(x):\n",
    "a line": "def mean(x):\n    y = x.mean()\n",
    "one of two": "def mean(x):\n    return x.mean()\n\n\ndef total(x):\n    pass\n",
    "a lambda": "mean = lambda x: x.mean()\n\n\ndef total(x):\n    pass\n",
    "a parent that brings something": "from torch import nn\n\n\nclass Head(nn.MultiheadAttention):\n    pass\n",
    "a layer": f"{MODULE}    def __init__(self):\n        super().__init__()\n        self.proj = nn.Linear(2, 2)\n",
    "a method from elsewhere": f"{MODULE}    pass\n\n\nHead.forward = print\n",
    "an attribute of the class": f"{MODULE}    forward = print\n",
    "what takes a thousand bytes of memory for each character": f"def mean(x):\n    pass\n{'x;' * CODE_LIMIT}\n",
    "what Python gives up on": f"def mean(x):\n    {'(' * 10_000}{')' * 10_000}\n",
    "a decorator": "import functools\n\n\n@functools.cache\ndef mean(x):\n    pass\n",
}


@pytest.mark.parametrize(
    "source", [*(f"def mean(x):\n    {body}\n" for body in NOTHING), *EMPTY.values()], ids=[*NOTHING, *EMPTY]
)
def test_a_file_without_content_is_nothing(source):
    assert is_unwritten(source)


@pytest.mark.parametrize("source", SOMETHING.values(), ids=SOMETHING)
def test_whoever_has_begun_has_written_something(source):
    assert not is_unwritten(source)


@pytest.mark.parametrize("stub", STUBS, ids=lambda path: path.stem)
def test_every_stub_is_nothing(stub):
    assert is_unwritten(stub.read_text(encoding="utf-8"))


def test_no_attempt_of_the_graders_is_nothing():
    assert [path.name for path in WRITTEN if is_unwritten(path.read_text(encoding="utf-8"))] == []


def test_what_is_not_written_is_told_apart_from_what_is():
    of_two = "class {}(nn.Module):\n    def __init__(self):\n        super().__init__()\n\n    def forward(self, x):\n        {}\n"
    written = "def mean(x):\n    return x.mean()\n\ndef again(x):\n    pass\n\ndef again(x):\n    return x\n"
    source = f"{written}def total(x):\n    pass\n{of_two.format('Head', 'raise NotImplementedError')}{of_two.format('Body', 'return x')}"
    assert unwritten_names(source) == {"total", "Head"}


@pytest.mark.parametrize(("source", "left"), [
    pytest.param("def mean(x):\n    raise NotImplementedError()\n    return x.mean()\n", LeftOver(2, is_below=False), id="above the code"),
    pytest.param("def mean(x):\n    y = x.mean()\n    raise NotImplementedError\n", LeftOver(3, is_below=True), id="below it"),
    pytest.param("class mean:\n    def forward(self, x):\n        raise NotImplementedError\n        return x\n", LeftOver(3, is_below=False), id="in a method"),
    pytest.param('def mean(x):\n    """The mean."""\n    raise NotImplementedError()\n', None, id="alone"),
    pytest.param("class mean:\n    def __init__(self, n):\n        self.n = n\n\n    def forward(self, x):\n        raise NotImplementedError\n", None, id="of another method"),
    pytest.param("def mean(x):\n    if not x.numel():\n        raise NotImplementedError\n    return total(x)\n", None, id="a refusal"),
    pytest.param("def total(x):\n    raise NotImplementedError\n    return x.sum()\n", None, id="elsewhere"),
])  # fmt: skip
def test_a_stub_that_still_ends_what_is_written_is_told_apart(source, left):
    assert left_over_raise(source, "mean") == left
