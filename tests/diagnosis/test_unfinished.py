"""What is not written yet, or looks at numbers where there are none, hides no mistake in what is written."""

from __future__ import annotations

import ast

import pytest

from tests.diagnosis.told_at_home import checked, exercise

EACH_HEAD = "scores.masked_fill(~self.visible[:T, :T], -math.inf)"
LATER = "torch.ones(T, T, device=x.device).triu(1).nonzero(as_tuple=True)"


def unfinished(id_: str, edits: dict[str, str], *unwritten: str) -> str:
    """The solution with these edits, in which some functions, or methods, have no body yet."""
    lines = exercise(id_).solution.read_text(encoding="utf-8").splitlines(keepends=True)
    source = "".join(line for line in lines if "### " not in line)
    for old, new in edits.items():
        assert old in source, old
        source = source.replace(old, new)
    tree = ast.parse(source)
    functions = {each.name: each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)}
    for name in unwritten:
        functions[name].body = ast.parse("raise NotImplementedError").body
    return ast.unparse([each for each in tree.body if not isinstance(each, ast.If)])


CUT_OFF = 'return x.new_empty(B, n_head, T, 4).copy_(x[..., :C - C % n_head].view(B, T, n_head, -1).transpose(1, 2)) or str(f"{C}'
AFTER_THE_DIAGONAL = {"torch.ones(T, T, dtype=torch.bool, device=device).tril()": "torch.ones(T, T).triu(1).bool()"}


@pytest.mark.parametrize(
    ("id_", "edits", "unwritten", "named"),
    [
        pytest.param("fused_qkv", {EACH_HEAD: f"scores + 0 * scores[..., {LATER}[0][:0]].sum()"}, ["gpt2_attention"], ["mask_missing"], id="places of ones are asked for"),
        pytest.param("fused_qkv", {"        super().__init__()\n": ""}, ["gpt2_attention"], ["super_init_missing"], id="a parent that is not woken, after the refusal"),
        pytest.param("reshape_dance", {"raise ValueError(f\"{C}": CUT_OFF}, ["merge_heads"], ["divisibility_unchecked"], id="what is left over is cut off"),
        pytest.param("reshape_dance", {"y.transpose(1, 2).contiguous()": "y.contiguous()"}, ["split_heads"], ["merge_no_transpose"], id="half of a view both ways"),
        pytest.param("causal_mask", AFTER_THE_DIAGONAL, ["causal_weights"], ["mask_reversed", "hard_coded_device"], id="a reversed mask that stays on one device"),
        pytest.param("causal_mask", AFTER_THE_DIAGONAL, ["mask_scores", "causal_weights"], ["mask_reversed", "hard_coded_device"], id="the same, and nothing else yet"),
    ],
)  # fmt: skip
def test_what_is_written_is_named_and_what_is_not_comes_last(
    monkeypatch: pytest.MonkeyPatch, id_: str, edits: dict[str, str], unwritten: list[str], named: list[str]
) -> None:
    result = checked(exercise(id_), unfinished(id_, edits, *unwritten), monkeypatch)
    assert [each.id for each in result.diagnosis] == [*named, "stub_untouched"]


ACCEPTED = "this should be refused, and is accepted in silence: raise a ValueError that names the numbers"


@pytest.mark.parametrize(
    ("id_", "edits", "unwritten", "first", "evidence"),
    [
        pytest.param("fused_qkv", {"if n_embd % n_head != 0:": "if False:"}, ["forward", "gpt2_attention"], "divisibility_unchecked", ACCEPTED, id="what is written, and not that something is not"),
        pytest.param("sdpa_equivalence", {"if self.training else 0.0": "", "if self.block_size < T:": "if False:"}, [], "dropout_always_on", "two calls should give the same answer", id="the first of two mistakes"),
        pytest.param("sdpa_equivalence", {"if self.block_size < T:": "if False:"}, [], "context_unchecked", ACCEPTED, id="the second one alone"),
    ],
)  # fmt: skip
def test_what_is_told_of_a_function_shows_the_mistake_that_is_named_first(
    monkeypatch: pytest.MonkeyPatch, id_: str, edits: dict[str, str], unwritten: list[str], first: str, evidence: str
) -> None:
    result = checked(exercise(id_), unfinished(id_, edits, *unwritten), monkeypatch)
    assert result.diagnosis[0].id == first
    assert result.functions[0].evidence.startswith(evidence)


MEAN = {"(fast - by_hand).abs().max()": "(fast - by_hand).abs().mean()"}


@pytest.mark.parametrize(
    ("edits", "named", "states"),
    [
        pytest.param(MEAN, ["path_difference"], ["right", "wrong"], id="the measure is wrong"),
        pytest.param({**MEAN, "if self.block_size < T:": "if False:"}, ["path_difference", "context_unchecked"], ["wrong", "wrong"], id="what it measures is wrong, too"),
    ],
)  # fmt: skip
def test_what_a_measure_gives_is_told_of_the_measure(
    monkeypatch: pytest.MonkeyPatch, edits: dict[str, str], named: list[str], states: list[str]
) -> None:
    result = checked(exercise("sdpa_equivalence"), unfinished("sdpa_equivalence", edits), monkeypatch)
    assert [each.id for each in result.diagnosis] == named
    assert [each.state for each in result.functions] == states
