"""Small edits of a student's own text: which are tried, how many, and which line is told where one
of them is proved.
"""

import sys
from collections.abc import Sequence

import pytest

from manyheads.judge.edit_search import MAX_EDITS, Bounds, OutOfTime, candidates, find_lines
from manyheads.judge.parts_reached_by_calls import LineEdit
from manyheads.submission import Source

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
{body}
"""


def edits(text: str, *targets: str) -> list[LineEdit]:
    """What is tried, each a text that Python can parse."""
    result = candidates(Source("attempt.py", text), targets)
    for edit in result:
        assert edit.after.tree
    return result


def changed_to(text: str, *targets: str) -> set[str]:
    """The lines that edits put in place of others."""
    return {
        new
        for edit in edits(text, *targets)
        for new in edit.after.lines
        if new not in edit.before.lines
    }


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        pytest.param("return x.softmax(dim=1)", "return x.softmax(dim=-1)", id="an axis"),
        pytest.param("return q / k", "return k / q", id="operands in the other order"),
        pytest.param("return f(q, k)", "return f(k, q)", id="arguments in the other order"),
        pytest.param(
            "return q @ k", "return q @ k.transpose(-2, -1)", id="a factor that is not transposed"
        ),
        pytest.param("return q @ k.mT", "return q @ k", id="a factor that need not be transposed"),
        pytest.param(
            "return q.transpose(1, 2).view(2, 3)",
            "return q.transpose(1, 2).contiguous().view(2, 3)",
            id="a view of scattered memory",
        ),
        pytest.param(
            "return q.view(2, 3)", "return q.reshape(2, 3)", id="a view that should be a reshape"
        ),
        pytest.param(
            "return q.view(2, 3, 4, 5)",
            "return q.view(2, 4, 3, 5).transpose(1, 2)",
            id="sizes of a view without their move",
        ),
        pytest.param(
            "return q / k.shape[-1]", "return q / (k.shape[-1] ** 0.5)", id="a root forgotten"
        ),
        pytest.param(
            "return q @ k.mT", "return ((q @ k.mT) / q.shape[-1] ** 0.5)", id="a scale forgotten"
        ),
        pytest.param("return q * k", "return (q / k)", id="a product for a quotient"),
        pytest.param("return q * -k", "return q * k", id="a sign"),
        pytest.param("return q if k < 3 else f", "return q if k <= 3 else f", id="a comparison"),
        pytest.param("return torch.tril(q)", "return torch.triu(q)", id="a triangle for the other"),
        pytest.param(
            "return q.tril()", "return q.triu(diagonal=1)", id="a triangle with another diagonal"
        ),
        pytest.param(
            "return q.masked_fill(k, 0.0)", "return q.masked_fill(~k, 0.0)", id="an inverted mask"
        ),
        pytest.param(
            'return q.masked_fill(k, float("inf"))',
            'return q.masked_fill(k, float("-inf"))',
            id="the other infinity",
        ),
        pytest.param(
            "return F.dropout(q, k)",
            "return F.dropout(q, k, training=self.training)",
            id="dropout that never sleeps",
        ),
        pytest.param(
            "return sdpa(q, dropout_p=k)",
            "return sdpa(q, dropout_p=k if self.training else 0.0)",
            id="a probability without its gate",
        ),
        pytest.param("return q.softmax(-1).detach()", "return q.softmax(-1)", id="a call too many"),
        pytest.param(
            "return torch.softmax(q)", "return torch.softmax(q, dim=-1)", id="an argument forgotten"
        ),
        pytest.param(
            'return einsum("bij,bkj->bik", q, k)',
            'return einsum("bij,bjk->bik", q, k)',
            id="letters of an einsum",
        ),
        pytest.param("q.softmax(-1)", "return q.softmax(-1)", id="a return forgotten"),
        pytest.param("return k", "return q", id="a name for another"),
    ],
)
def test_a_mistake_is_among_what_is_undone(wrong: str, right: str) -> None:
    source = f"import torch\ndef attend(q, k, f):\n    {wrong}\n"
    assert f"    {right}" in changed_to(source)
    assert {edit.line for edit in edits(source) if f"    {right}\n" in edit.after.text} == {3}


def test_a_line_too_many_is_taken_out() -> None:
    source = "def attend(q):\n    q = q.mT\n    q = q.mT\n    return q\n"
    assert "def attend(q):\n    pass\n    q = q.mT\n    return q\n" in {
        edit.after.text for edit in edits(source)
    }


def test_a_forgotten_super_is_put_before_the_first_statement() -> None:
    source = MODULE.format(body="        return x").replace("        super().__init__()\n", "")
    edit = edits(source)[0]
    assert (edit.category, edit.line) == ("super", 7)
    assert "        super().__init__(); self.width = width\n" in edit.after.text


@pytest.mark.parametrize(
    "first",
    [
        "if width:\n            pass",
        "match width:\n            case 0:\n                pass",
        "try:\n            pass\n        except* ValueError:\n            pass",
        "def twice(n):\n            return 2 * n",
        "class Options:\n            pass",
    ],
)
def test_a_forgotten_super_is_put_on_a_line_before_a_compound_statement(first: str) -> None:
    source = MODULE.format(body="        return x").replace("super().__init__()", first)
    supers = [edit for edit in edits(source) if edit.category == "super"]
    assert f"        super().__init__()\n        {first}" in supers[0].after.text


def test_a_layer_is_tried_in_place_of_another_and_a_size_in_place_of_another() -> None:
    body = "        size = x.shape[1] * self.dropout\n        return self.key(x) / size"
    tried = changed_to(MODULE.format(body=body))
    assert "        return self.query(x) / size" in tried
    assert "        size = x.shape[1] * self.width" in tried
    assert "        return self.width(x) / size" not in tried


FUNCTIONS = (
    "def one(q):\n    return two(q) * 1\n\ndef two(q):\n    return q * 2\n\ndef three(q):\n"
    "    return q * 3\n"
)
CLASSES = (
    "class One:\n    def forward(self, q):\n        return q * 1\n\nclass Two(One):\n"
    "    def forward(self, q):\n        return q * 2\n"
)


@pytest.mark.parametrize(
    ("source", "target", "lines"),
    [
        (FUNCTIONS, "one", {2, 5}),
        (FUNCTIONS, "three", {8}),
        (FUNCTIONS, "none of them", {2, 5, 8}),
        (CLASSES, "One", {3}),
        (CLASSES, "Two", {3, 7}),
        # An assignment gives a function to a class, or several names to functions.
        (f"class One:\n    pass\n\n{FUNCTIONS}\nOne.forward = three\n", "One", {11, 13}),
        (f"{FUNCTIONS}\nfour, five = two, three\n", "four", {5, 8, 10}),
    ],
)
def test_only_what_the_failed_calls_reach_is_edited(
    source: str, target: str, lines: set[int]
) -> None:
    assert {edit.line for edit in edits(source, target)} == lines


def test_what_is_no_code_stays() -> None:
    source = 'def f(q: "Tensor[1]" = 2):\n    """1 and 2."""\n    raise ValueError(f"{q} is 3")\n'
    assert {edit.after.text.count('"""1 and 2."""') for edit in edits(source)} == {1}
    assert all(
        'raise ValueError(f"{q} is 3")' in edit.after.text and '"Tensor[1]"' in edit.after.text
        for edit in edits(source)
    )


def test_an_edit_tells_its_line_of_the_file_as_it_was_handed_in() -> None:
    source = "é = 1\n\ndef f(ü, b):\n    return g(\n        ü,\n        b - 1,\n    )\n"
    lines = {edit.description: edit.line for edit in edits(source)}
    assert lines["b - 1, → (b + 1),"] == 6
    assert {edit.line for edit in edits(source) if ").transpose(1, 2)" in edit.after.text} == {7}
    assert all(1 <= edit.line <= 7 for edit in edits(source))


def test_what_is_not_seen_does_not_turn_the_line_that_the_instructor_reads() -> None:
    source = "def f(q, k):\n    return q / k  # \u202edaer\x1b[2J\x0b\n"
    assert {edit.description.isprintable() for edit in edits(source)} == {True}


def test_likely_edits_come_first_and_those_on_the_line_of_an_exception_before_them() -> None:
    source = Source("attempt.py", "def f(q, k):\n    q = q.sum(0)\n    return q / k\n")
    assert [e.line for e in candidates(source, (), {3})][:3] == [3, 3, 3]
    tiers = [edit.tier for edit in candidates(source, ())]
    assert tiers == sorted(tiers)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("def f(x):\n    return x + 1\n" + "\n" * 400, id="too many lines"),
        pytest.param("def f(x):\n    return x + 1\n" + "x" * 20_000, id="too many characters"),
        pytest.param(
            "def f(a, b):\n" + f"    {'a' * 25}, b = b - a, a - {'b' * 8}\n" * 350,
            id="more than is loaded in the time",
        ),
        pytest.param("def f(x:\n", id="no Python"),
        pytest.param("x = " + "-" * 15_000 + "1", id="a thousand signs"),
        pytest.param("def f(x):\n    return x" + ".y" * 1500 + "\n", id="a chain without end"),
        pytest.param('if __name__ == "__main__":\n    print(1 + 1)\n', id="below main"),
        pytest.param("", id="nothing"),
    ],
)
def test_what_is_too_long_or_no_code_is_not_edited(text: str) -> None:
    assert candidates(Source("attempt.py", text), ()) == []


def test_an_integer_that_cannot_be_written_down_again_is_left_alone() -> None:
    text = f"def f(x):\n    return x + 1 + 0x{'f' * 5000}\n"
    result = candidates(Source("attempt.py", text), ())
    assert result
    assert all("f" * 5000 in edit.after.text for edit in result if edit.category == "number")


NAMES = [f"n{i}" for i in range(300)]
LONG = (
    f"def f({', '.join(NAMES)}):\n    a = {' + '.join(NAMES[:150])}\n"
    f"    return a + {' + '.join(NAMES[150:])}\n"
)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(LONG, id="names alone"),
        pytest.param(
            f"{LONG}# \N{GRINNING FACE}{'a' * 40_000}",
            id="with an emoji, by which a text takes four times the memory",
        ),
    ],
)
def test_a_long_text_has_bounded_edits(text: str) -> None:
    result = candidates(Source("attempt.py", text), ())
    assert 0 < len(result) <= MAX_EDITS
    assert sum(sys.getsizeof(edit.after.text) for edit in result) <= 80_000_000


def edit_of(line: int, kind: str = "number", number: int = 0) -> LineEdit:
    return LineEdit(kind, 1, line, Source(""), Source("", f"{kind} {line} {number}"))


EDITS = [edit_of(line) for line in range(1, 101)]
TWICE = [edit_of(7, number=1), edit_of(7, number=2)]
SIGN, SWAP = edit_of(3, "sign"), edit_of(9, "swap")


@pytest.mark.parametrize(
    ("edits", "right", "looks_well", "bounds", "lines", "looks", "proofs"),
    [
        pytest.param(EDITS, [EDITS[40]], [], {}, [41], 100, 1, id="one line that mends all"),
        pytest.param(
            EDITS[::-1],
            [EDITS[40], EDITS[4]],
            [],
            {},
            [5, 41],
            100,
            2,
            id="two lines, in their order",
        ),
        pytest.param(
            EDITS, [EDITS[4], EDITS[40], EDITS[50]], [], {}, [], 64, 3, id="of three lines none"
        ),
        pytest.param(EDITS, [], [EDITS[3]], {}, [], 100, 1, id="what only looks well is not told"),
        pytest.param(TWICE, TWICE, [], {}, [7], 2, 1, id="a line is proved once"),
        pytest.param(
            [SIGN, *EDITS, SWAP],
            [SIGN, SWAP],
            [],
            {},
            [3],
            16,
            1,
            id="after the first proof only edits of its kind",
        ),
        pytest.param(
            EDITS,
            [EDITS[40]],
            [],
            {"edits": 40},
            [],
            40,
            0,
            id="no more edits are tried than the bound",
        ),
        pytest.param(
            EDITS, [EDITS[40]], [], {"edits": 41}, [41], 41, 1, id="the last edit within the bound"
        ),
        pytest.param(
            EDITS,
            [EDITS[40]],
            EDITS[:3],
            {"proofs": 3},
            [],
            48,
            3,
            id="no more edits are proved than the bound",
        ),
        pytest.param(
            EDITS,
            [EDITS[40]],
            EDITS[:3],
            {"proofs": 4},
            [41],
            100,
            4,
            id="the last proof within the bound",
        ),
    ],
)
def test_lines_are_told_where_edits_of_them_are_proved(
    edits, right, looks_well, bounds, lines, looks, proofs
):
    looked, proved = list[Source](), list[Source]()

    def look(edited: Sequence[Source]) -> list[bool]:
        looked.extend(edited)
        accepted = {e.after for e in (*right, *looks_well)}
        return [source in accepted for source in edited]

    def passes(edited: Source) -> bool:
        proved.append(edited)
        return edited in {e.after for e in right}

    assert [
        proved_line.line for proved_line in find_lines(edits, look, passes, Bounds(**bounds))
    ] == lines
    assert (len(looked), len(proved)) == (looks, proofs)


def test_a_search_whose_time_is_over_raises_whatever_it_has_found() -> None:
    def look(edited: Sequence[Source]) -> list[bool]:
        if EDITS[50].after in edited:
            raise OutOfTime
        return [source == EDITS[0].after for source in edited]

    with pytest.raises(OutOfTime):
        find_lines(EDITS, look, lambda _: True, Bounds())
