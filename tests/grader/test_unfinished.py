"""At the real course: a mistake has its name while the functions after it are unfinished, in
whatever way.
"""

import ast

import pytest

from manyheads.authoring.make_stub import STUB
from manyheads.result import ExerciseResult
from tests.diagnosis.both_sides import Sides

NOT_BEGUN = "raise NotImplementedError"
UNFINISHED = {
    "not begun": NOT_BEGUN,
    "nothing but pass": "pass",
    "half a line": "return not_there_yet",
    "not there at all": "",
}
MISTAKES = [
    pytest.param(
        "reshape_dance",
        "wrong_view",
        {
            "x = x.view(B, T, n_head, C // n_head)": "x = x.view(B, n_head, T, C // n_head)",
            "return x.transpose(1, 2)  # (B, nh": "return x  # (B, nh",
        },
        "merge_heads",
        id="the wrong view, without a merge",
    ),
    pytest.param(
        "attention_scores",
        "scale_missing",
        {" / math.sqrt(q.shape[-1])": ""},
        "attention_weights",
        id="scores that are not scaled, without weights",
    ),
    pytest.param(
        "causal_mask",
        "mask_excludes_self",
        {"device=device).tril()": "device=device).tril(-1)"},
        "mask_scores",
        id="a mask that hides the token itself, which nobody uses",
    ),
    pytest.param(
        "fused_qkv",
        "scale_sqrt_c",
        {"math.sqrt(self.head_dim)": "math.sqrt(C)"},
        "gpt2_attention",
        id="a scale of √C, without GPT-2's sizes",
    ),
    pytest.param(
        "sdpa_equivalence",
        "mask_missing",
        {"dropout_p=dropout_p, is_causal=True": "dropout_p=dropout_p"},
        "max_path_difference",
        id="a fused call without a mask, without the comparison",
    ),
]


def replace_bodies(text: str, first_function: str, body: str) -> str:
    """The text with this body in all functions from `first_function` on; without them where it is
    empty.
    """
    tree = ast.parse(text)
    names = [
        node.name if isinstance(node, ast.FunctionDef | ast.ClassDef) else "" for node in tree.body
    ]
    start = names.index(first_function)
    statements: list[ast.stmt] = tree.body[:start]
    for node in tree.body[start:]:
        if isinstance(node, ast.FunctionDef) and body:
            node.body = ast.parse(body).body
            statements.append(node)
    return ast.unparse(ast.Module(statements, []))


def names_of(result: ExerciseResult) -> list[set[str]]:
    """Each name with what may stand in its place, but for the name of what is not written."""
    return [{d.id, *d.alternatives} for d in result.diagnosis if d.id != "stub_untouched"]


@pytest.mark.parametrize("body", UNFINISHED.values(), ids=UNFINISHED)
@pytest.mark.parametrize(("exercise", "id_", "changes", "first"), MISTAKES)
def test_it_is_the_only_name_when_graded_and_at_home(
    sides: Sides, exercise, id_, changes, first, body
):
    attempt = replace_bodies(sides.source(exercise, changes).text, first, body)
    for names in map(names_of, sides.both_results(exercise, attempt)):
        assert id_ in names[0]
        assert [name for name in names[1:] if name != {"interface"}] == []


def test_a_name_is_not_made_from_two_answers_of_a_function_that_uses_what_is_wrong(
    sides: Sides,
) -> None:
    """Its few values fit several mutants; what it calls is wrong in a way that no mutant has."""
    squashed = {
        "weights = self.attn_dropout(scores.softmax(dim=-1))": "weights = torch.tanh(scores)"
    }
    result = sides.home("fused_qkv", squashed)
    assert result.score < result.max_score
    assert names_of(result) == []


TWO = {"device=device).tril()": "device=device).tril(-1)", "masked_fill(~mask": "masked_fill(mask"}
UNLISTED = {"torch.softmax(mask_scores(scores, mask), dim=-1)": "scores.cumsum(-1)"}


def test_two_mistakes_in_two_functions_have_a_name_each(sides: Sides) -> None:
    for result in sides.both_results("causal_mask", TWO | UNLISTED):
        assert [d.id for d in result.diagnosis] == ["mask_excludes_self", "mask_reversed"]


def test_no_name_is_said_twice(sides: Sides) -> None:
    """Where two mutants of one misconception explain two functions each, it is one mistake to
    whoever reads it.
    """
    ids = [d.id for d in sides.home("causal_mask", TWO).diagnosis]
    assert len(ids) == len(set(ids)) > 1


def test_of_two_that_explain_what_is_written_the_smaller_mistake_is_named_first(
    sides: Sides,
) -> None:
    """The wrong view in, with nothing written to lead out: that it leads straight back, too, nobody
    can know.
    """
    script = sides.exercise("reshape_dance").script.read_text(encoding="utf-8")
    split, merge = script.split(STUB[1])[:2]
    tail = script[len(split) + len(STUB[1]) :]
    assert "merge_heads" in merge
    view = (
        "if x.shape[-1] % n_head:\n        raise ValueError(f'{x.shape[-1]} into {n_head}')\n"
        "    B, T, C = x.shape\n"
    )
    for result in sides.both_results(
        "reshape_dance", f"{split}{view}    return x.view(B, n_head, T, C // n_head){tail}"
    ):
        assert result.diagnosis[0].id == "wrong_view"


@pytest.mark.parametrize("name", ["sdpa_each_head.py", "vmap_sdpa.py"])
def test_what_is_right_stays_so_while_what_compares_it_is_not_written(
    sides: Sides, name: str
) -> None:
    attempt_path = next(
        path for path in sides.exercise("sdpa_equivalence").right_attempts() if path.name == name
    )
    text = replace_bodies(
        attempt_path.read_text(encoding="utf-8"), "max_path_difference", NOT_BEGUN
    )
    result = sides.grade_attempt("sdpa_equivalence", text)
    assert [misconception.id for misconception in result.diagnosis] == ["stub_untouched"]
    assert [function.state for function in result.functions] == ["so_far", "unwritten"]
