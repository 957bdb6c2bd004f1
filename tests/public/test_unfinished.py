"""What is not written yet, or looks at numbers where there are none, hides no mistake in what is written."""

from __future__ import annotations

import ast

import pytest

from tests.public.told_at_home import checked, exercise

EACH_HEAD = "scores.masked_fill(~self.visible[:T, :T], -math.inf)"
LATER = "torch.ones(T, T, device=x.device).triu(1).nonzero(as_tuple=True)"


def unfinished(id_: str, edits: dict[str, str], unwritten: str) -> str:
    """The solution with these edits, in which one function has no body yet."""
    source = "".join(
        line for line in exercise(id_).solution.read_text().splitlines(keepends=True) if "### " not in line
    )
    for old, new in edits.items():
        assert old in source, old
        source = source.replace(old, new)
    tree = ast.parse(source)
    function = next(each for each in tree.body if getattr(each, "name", "") == unwritten)
    assert isinstance(function, ast.FunctionDef)
    function.body = ast.parse("raise NotImplementedError").body
    return ast.unparse([each for each in tree.body if not isinstance(each, ast.If)])


@pytest.mark.parametrize(
    ("id_", "edits", "unwritten", "named"),
    [
        pytest.param("fused_qkv", {EACH_HEAD: f"scores + 0 * scores[..., {LATER}[0][:0]].sum()"}, "gpt2_attention", "mask_missing", id="places of ones are asked for"),
        pytest.param("fused_qkv", {"        super().__init__()\n": ""}, "gpt2_attention", "super_init_missing", id="a parent that is not woken, after the refusal"),
        pytest.param("reshape_dance", {"raise ValueError(f\"{C}": "return x.new_empty(B, n_head, T, 4).copy_(x[..., :C - C % n_head].view(B, T, n_head, -1).transpose(1, 2)) or str(f\"{C}"}, "merge_heads", "divisibility_unchecked", id="what is left over is cut off"),
    ],
)  # fmt: skip
def test_what_is_written_is_named_and_what_is_not_comes_last(
    monkeypatch: pytest.MonkeyPatch, id_: str, edits: dict[str, str], unwritten: str, named: str
) -> None:
    result = checked(exercise(id_), unfinished(id_, edits, unwritten), monkeypatch)
    assert [each.id for each in result.diagnosis] == [named, "stub_untouched"]
