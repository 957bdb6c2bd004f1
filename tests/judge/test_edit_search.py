"""The search for a small edit that makes an attempt right: which edits are tried, in what order."""

import sys

import pytest

from manyheads.judge.edit_search import MAX_EDITS, Bounds, OutOfTime, candidates, find_lines
from manyheads.judge.parts_reached_by_calls import LineEdit
from manyheads.submission import Source
from tests.make import cases, read_table

MISTAKES = read_table("judge/mistakes.yaml")
MODULE = """\
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.width = width
        self.dropout = dropout
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x
"""
COMPOUND = (
    "if width:\n            pass",
    "match width:\n            case 0:\n                pass",
    "try:\n            pass\n        except* ValueError:\n            pass",
    "def twice(n):\n            return 2 * n",
    "class Options:\n            pass",
)


def edits(text, *targets):
    """Return the candidate edits of a text, after a check that each edited text can be parsed."""
    result = candidates(Source("attempt.py", text), targets)
    for edit in result:
        assert edit.after.tree
    return result


def new_lines(text, *targets):
    """Return the lines that the edits of a text write."""
    return {
        new
        for edit in edits(text, *targets)
        for new in edit.after.lines
        if new not in edit.before.lines
    }


@cases("before, after", MISTAKES)
def test_an_edit_undoes_a_mistake(before, after):
    source = f"import torch\ndef attend(q, k, f):\n    {before}\n"
    assert f"    {after}" in new_lines(source)
    assert {edit.line for edit in edits(source) if f"    {after}\n" in edit.after.text} == {3}


@cases(
    "before, after, category",
    {
        "a line too many is taken out": (
            "def attend(q):\n    q = q.mT\n    q = q.mT\n    return q\n",
            "def attend(q):\n    pass\n    q = q.mT\n    return q\n",
            "",
        ),
        "a missing super() is put before the first statement": (
            MODULE.replace("super().__init__()\n        self.width", "self.width"),
            MODULE.replace(
                "super().__init__()\n        self.width", "super().__init__(); self.width"
            ),
            "super",
        ),
        **{
            f"a missing super() is put on a line before {first.split()[0]}": (
                MODULE.replace("super().__init__()", first),
                MODULE.replace("super().__init__()", f"super().__init__()\n        {first}"),
                "super",
            )
            for first in COMPOUND
        },
    },
)
def test_an_edit_removes_a_line_or_adds_a_super_call(before, after, category):
    matching_edits = [edit for edit in edits(before) if edit.after.text == after]
    assert matching_edits
    if category:
        assert matching_edits[0].category == category


def test_layers_replace_layers_and_sizes_replace_sizes():
    body = "        size = x.shape[1] * self.dropout\n        return self.key(x) / size\n"
    lines = new_lines(MODULE.replace("        return x\n", body))
    assert "        return self.query(x) / size" in lines
    assert "        size = x.shape[1] * self.width" in lines
    assert "        return self.width(x) / size" not in lines


FUNCTIONS = (
    "def one(q):\n    return two(q) * 1\n\ndef two(q):\n    return q * 2\n\ndef three(q):\n"
    "    return q * 3\n"
)
CLASSES = (
    "class One:\n    def forward(self, q):\n        return q * 1\n\nclass Two(One):\n"
    "    def forward(self, q):\n        return q * 2\n"
)


@cases(
    "source, target, lines",
    {
        "a function that calls another one": (FUNCTIONS, "one", {2, 5}),
        "a function that calls none": (FUNCTIONS, "three", {8}),
        "an unknown name": (FUNCTIONS, "none of them", {2, 5, 8}),
        "a class": (CLASSES, "One", {3}),
        "a class with a base": (CLASSES, "Two", {3, 7}),
        "a class whose method is assigned": (
            f"class One:\n    pass\n\n{FUNCTIONS}\nOne.forward = three\n",
            "One",
            {11, 13},
        ),
        "a function with a second name": (
            f"{FUNCTIONS}\nfour, five = two, three\n",
            "four",
            {5, 8, 10},
        ),
    },
)
def test_only_the_lines_that_failed_calls_reach_are_edited(source, target, lines):
    assert {edit.line for edit in edits(source, target)} == lines


def test_texts_and_annotations_are_not_edited():
    source = 'def f(q: "Tensor[1]" = 2):\n    """1 and 2."""\n    raise ValueError(f"{q} is 3")\n'
    for edit in edits(source):
        for text in ('"""1 and 2."""', 'raise ValueError(f"{q} is 3")', '"Tensor[1]"'):
            assert text in edit.after.text


def test_an_edit_has_a_line_and_a_printable_description():
    source = "é = 1\n\ndef f(ü, b):\n    return g(\n        ü,\n        b - 1,\n    )\n"
    lines = {edit.description: edit.line for edit in edits(source)}
    assert lines["b - 1, → (b + 1),"] == 6
    assert {edit.line for edit in edits(source) if ").transpose(1, 2)" in edit.after.text} == {7}
    hidden = "def f(q, k):\n    return q / k  # \u202edaer\x1b[2J\x0b\n"
    assert {edit.description.isprintable() for edit in edits(hidden)} == {True}


def test_edits_of_the_line_that_raised_come_first():
    source = Source("attempt.py", "def f(q, k):\n    q = q.sum(0)\n    return q / k\n")
    assert [edit.line for edit in candidates(source, (), {3})][:3] == [3, 3, 3]
    tiers = [edit.tier for edit in candidates(source, ())]
    assert tiers == sorted(tiers)


@cases(
    "text",
    {
        "has too many lines": "def f(x):\n    return x + 1\n" + "\n" * 400,
        "has too many characters": "def f(x):\n    return x + 1\n" + "x" * 20_000,
        "has more than is loaded in the time": (
            "def f(a, b):\n" + f"    {'a' * 25}, b = b - a, a - {'b' * 8}\n" * 350
        ),
        "is no Python": "def f(x:\n",
        "has thousands of signs": "x = " + "-" * 15_000 + "1",
        "has a chain without end": "def f(x):\n    return x" + ".y" * 1500 + "\n",
        "stands below main": 'if __name__ == "__main__":\n    print(1 + 1)\n',
        "is empty": "",
    },
)
def test_a_text_that_is_too_long_or_invalid_has_no_edits(text):
    assert candidates(Source("attempt.py", text), ()) == []


def test_an_integer_too_long_to_print_is_not_edited():
    text = f"def f(x):\n    return x + 1 + 0x{'f' * 5000}\n"
    numbers = [
        edit for edit in candidates(Source("attempt.py", text), ()) if edit.category == "number"
    ]
    assert numbers
    assert all("f" * 5000 in edit.after.text for edit in numbers)


NAMES = [f"n{i}" for i in range(300)]
LONG = (
    f"def f({', '.join(NAMES)}):\n    a = {' + '.join(NAMES[:150])}\n"
    f"    return a + {' + '.join(NAMES[150:])}\n"
)


@cases(
    "comment",
    {
        "in ASCII": "",
        "with an emoji, so that it takes four times the memory": (
            f"# \N{GRINNING FACE}{'a' * 40_000}"
        ),
    },
)
def test_the_edits_of_a_long_text_are_bounded(comment):
    result = candidates(Source("attempt.py", LONG + comment), ())
    assert 0 < len(result) <= MAX_EDITS
    assert sum(sys.getsizeof(edit.after.text) for edit in result) <= 80_000_000


def edit_of(line, kind="number", number=0):
    return LineEdit(kind, 1, line, Source(""), Source("", f"{kind} {line} {number}"))


EDITS = [edit_of(line) for line in range(1, 101)]
OF_ONE_LINE = [edit_of(7, number=1), edit_of(7, number=2)]
OF_THREE_KINDS = [edit_of(3, "sign"), *EDITS, edit_of(9, "swap")]


@cases(
    "edits, right, looks_right, bounds, proved, look_count, proof_count",
    {
        "one line that mends all": (EDITS, {41}, {}, {}, [41], 100, 1),
        "two lines, in their order": (EDITS[::-1], {41, 5}, {}, {}, [5, 41], 100, 2),
        "none of three lines": (EDITS, {5, 41, 51}, {}, {}, [], 64, 3),
        "none that only looks right": (EDITS, {}, {4}, {}, [], 100, 1),
        "a line once": (OF_ONE_LINE, {7}, {}, {}, [7], 2, 1),
        "only edits of the kind of the first proof": (OF_THREE_KINDS, {3, 9}, {}, {}, [3], 16, 1),
        "none beyond the bound of edits": (EDITS, {41}, {}, {"edits": 40}, [], 40, 0),
        "the last within the bound of edits": (EDITS, {41}, {}, {"edits": 41}, [41], 41, 1),
        "none beyond the bound of proofs": (EDITS, {41}, {1, 2, 3}, {"proofs": 3}, [], 48, 3),
        "the last within the bound of proofs": (
            EDITS,
            {41},
            {1, 2, 3},
            {"proofs": 4},
            [41],
            100,
            4,
        ),
    },
)
def test_the_search_returns_the_lines_whose_edits_pass_every_check(
    edits, right, looks_right, bounds, proved, look_count, proof_count
):
    """Edits of lines in `right` pass every check; those in `looks_right` only the quick look."""
    line_of = {edit.after: edit.line for edit in edits}
    looks, proofs = list[Source](), list[Source]()

    def look(edited):
        looks.extend(edited)
        return [line_of[source] in {*right, *looks_right} for source in edited]

    def passes(edited):
        proofs.append(edited)
        return line_of[edited] in right

    lines = [line.line for line in find_lines(edits, look, passes, Bounds(**bounds))]
    assert (lines, len(looks), len(proofs)) == (proved, look_count, proof_count)


def test_a_search_that_runs_out_of_time_raises_even_after_a_proof():
    def look(edited):
        if EDITS[50].after in edited:
            raise OutOfTime
        return [source == EDITS[0].after for source in edited]

    with pytest.raises(OutOfTime):
        find_lines(EDITS, look, lambda _: True, Bounds())
