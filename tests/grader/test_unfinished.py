"""Attempts at the real course: a mistake is named even if later functions are unfinished."""

import ast

import pytest

from tests.diagnosis.both_sides import Sides, named_misconceptions

NOT_BEGUN = "raise NotImplementedError"
MISTAKES = [
    pytest.param(
        "reshape_dance",
        "wrong_view",
        {
            "x = x.view(B, T, n_head, C // n_head)": "x = x.view(B, n_head, T, C // n_head)",
            "return x.transpose(1, 2)  # (B, nh": "return x  # (B, nh",
        },
        "merge_heads",
        NOT_BEGUN,
        id="the wrong view, and the merge is not begun",
    ),
    pytest.param(
        "attention_scores",
        "scale_missing",
        {" / math.sqrt(q.shape[-1])": ""},
        "attention_weights",
        "pass",
        id="scores that are not scaled, and nothing but pass in the weights",
    ),
    pytest.param(
        "causal_mask",
        "mask_excludes_self",
        {"device=device).tril()": "device=device).tril(-1)"},
        "mask_scores",
        "",
        id="a mask that hides the token itself, and nothing else is there",
    ),
    pytest.param(
        "fused_qkv",
        "scale_sqrt_c",
        {"math.sqrt(self.head_dim)": "math.sqrt(C)"},
        "gpt2_attention",
        "return not_there_yet",
        id="a scale of √C, and half a line of GPT-2's sizes",
    ),
    pytest.param(
        "sdpa_equivalence",
        "mask_missing",
        {"dropout_p=dropout_p, is_causal=True": "dropout_p=dropout_p"},
        "max_path_difference",
        NOT_BEGUN,
        id="a fused call without a mask, and the comparison is not begun",
    ),
]


def replace_bodies(text: str, first_function: str, body: str) -> str:
    """Give all functions from `first_function` on this body; remove them if it is empty."""
    tree = ast.parse(text)
    starts = [getattr(node, "name", "") for node in tree.body]
    start = starts.index(first_function)
    statements: list[ast.stmt] = tree.body[:start]
    for node in tree.body[start:]:
        if isinstance(node, ast.FunctionDef) and body:
            node.body = ast.parse(body).body
            statements.append(node)
    return ast.unparse(ast.Module(statements, []))


@pytest.mark.parametrize(
    ("exercise", "misconception", "changes", "first_unfinished", "body"), MISTAKES
)
def test_grade_and_check_name_only_the_mistake_in_an_unfinished_attempt(
    sides: Sides,
    exercise: str,
    misconception: str,
    changes: dict[str, str],
    first_unfinished: str,
    body: str,
) -> None:
    attempt = replace_bodies(sides.source(exercise, changes).text, first_unfinished, body)
    for result in sides.both_results(exercise, attempt):
        first_name, *others = named_misconceptions(result)
        assert misconception in first_name.split("|")
        assert {*others} <= {"interface", "stub_untouched"}


def test_the_smaller_of_two_possible_mistakes_is_named_first(
    sides: Sides,
) -> None:
    """The view is wrong, and the merge is unwritten: a second wrong view there cannot be known."""
    wrong_view = {
        "x = x.view(B, T, n_head": "x = x.view(B, n_head, T",
        "return x.transpose(1, 2)": "return x",
        "    B, nh, T, hd = y.shape\n": f"    {NOT_BEGUN}\n",
    }
    for result in sides.both_results("reshape_dance", wrong_view):
        assert result.diagnosis[0].id == "wrong_view"


@pytest.mark.parametrize("file_name", ["sdpa_each_head.py", "vmap_sdpa.py"])
def test_right_code_is_not_blamed_while_the_comparison_is_unwritten(
    sides: Sides, file_name: str
) -> None:
    path = sides.exercise("sdpa_equivalence").checks.parents[1] / "right" / "sdpa_equivalence"
    text = (path / file_name).read_text(encoding="utf-8")
    attempt = replace_bodies(text, "max_path_difference", NOT_BEGUN)
    result = sides.grade_attempt("sdpa_equivalence", attempt)
    assert named_misconceptions(result) == ["stub_untouched"]
    assert [function.state for function in result.functions] == ["so_far", "unwritten"]
