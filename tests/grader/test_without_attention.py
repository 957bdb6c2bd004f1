"""An answer that uses no scores earns at most a fifth of an exercise, and course check shows no
more than grading gives.
"""

from pathlib import Path

import pytest

from tests.diagnosis.both_sides import Sides

ATTEMPTS = Path(__file__).parent / "attempts" / "without_attention"
MEAN = (
    "return t.cumsum(-2) / torch.arange(1, t.shape[-2] + 1, device=t.device, "
    "dtype=t.dtype)[:, None]"
)
DECAY = """age = torch.arange(t.shape[-2], device=t.device).to(t.dtype)
    age = (age[:, None] - age).tril()
    shares = (0.7**age).tril()
    return (shares / shares.sum(-1, keepdim=True)) @ t"""
# By what the shares are made of, and how much a gate on them, which goes by queries and by the mean
# key, changes.
WAYS = {
    "a running mean": (MEAN, "0"),
    "a running mean with a small gate": (MEAN, "1e-3"),
    "a running mean with a large gate": (MEAN, "0.5"),
    "a decay by distance with a large gate": (DECAY, "0.5"),
}
# The hidden check of GPT-2's sizes asks the class, too, but only where an attempt's heads are not
# those of the class.
ONLY_HIDDEN = {"fused_qkv": 0.25}
# Each weight here goes by its own score, or by its own key, and is not shared out as it should be:
# that is a use of the scores.
USES_SCORES = {"causal_mask", "cross_attention"}


@pytest.mark.recorded
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("exercise", sorted(path.stem for path in ATTEMPTS.glob("*.py")))
def test_an_answer_without_attention_earns_at_most_a_fifth(
    sides: Sides, exercise: str, way: str
) -> None:
    past, gate = WAYS[way]
    if gate == "0.5" and exercise in USES_SCORES:
        pytest.skip("with a large gate this one does go by its scores")
    text = (ATTEMPTS / f"{exercise}.py").read_text(encoding="utf-8")
    assert text.count("AMP = 1e-3\n") == text.count(MEAN) == 1
    graded, home = sides.both_results(
        exercise, text.replace("AMP = 1e-3\n", f"AMP = {gate}\n").replace(MEAN, past)
    )
    assert graded.score is not None
    assert graded.score <= graded.max_score / 5
    assert home.score is not None
    assert home.score <= graded.score + ONLY_HIDDEN.get(exercise, 0.0)


SOFTMAX, WEIGHTED = "return torch.softmax(scores, dim=-1)", "return weights @ v"
HIDE = "scores = scores.masked_fill("
CAPPED = f"scores = 3 * torch.tanh(scores / 3)\n        {HIDE}"
VIEWED = ".view(B, T, self.n_head, self.head_dim).transpose(1, 2)  # (B, nh, T, hd)"
JOINED = "y.transpose(1, 2).reshape(B, T, C)"
VIEWED_STRAIGHT = {
    VIEWED: ".reshape(B, self.n_head, T, self.head_dim)",
    JOINED: "y.reshape(B, T, C)",
}
OVER_HEADS = {
    VIEWED: ".view(B, T, self.n_head, self.head_dim)",
    "self.visible[:T, :T]": "self.visible[: self.n_head, : self.n_head]",
    JOINED: "y.reshape(B, T, C)",
}
# Exercise, how the reference is edited, and the least part of the points that is left of such a
# mistake.
MISUSES = [
    pytest.param("self_attention", {HIDE: CAPPED}, 0.6, id="a soft cap"),
    pytest.param("fused_qkv", {HIDE: CAPPED}, 0.6, id="a soft cap in several heads"),
    pytest.param(
        "attention_scores",
        {SOFTMAX: "return scores.exp() / (1 + scores.exp().sum(-1, keepdim=True))"},
        0.5,
        id="one added to what the softmax divides by",
    ),
    pytest.param(
        "sliding_window",
        {"query - window)": "query - window // 3)"},
        0.3,
        id="a third of the window",
    ),
    pytest.param("self_attention", {WEIGHTED: "return v"}, 0.0, id="weights that are not used"),
    pytest.param(
        "causal_mask",
        {"device=device).tril()": "device=device).tril().flip(1)"},
        0.5,
        id="a mask turned round",
    ),
    pytest.param("fused_qkv", VIEWED_STRAIGHT, 0.5, id="heads viewed straight, there and back"),
    pytest.param("fused_qkv", OVER_HEADS, 0.5, id="attention over the heads of each token"),
]


@pytest.mark.recorded
@pytest.mark.parametrize(("exercise", "changes", "least"), MISUSES)
def test_who_uses_scores_wrongly_loses_that_and_not_the_form(
    sides: Sides, exercise: str, changes: dict[str, str], least: float
) -> None:
    graded, home = sides.both_results(exercise, changes)
    assert graded.score is not None
    assert least * graded.max_score <= graded.score < graded.max_score
    assert home.score is not None
    assert home.score <= graded.score


# Exercise, and how the reference is edited: attempts of which course check once showed a point that
# grading took away.
SHOWN_ONCE = {
    "a causal mask, and padding that comes first": (
        "cross_attention",
        {
            "weights = scores.softmax(dim=-1)": (
                "ahead = torch.ones(T_q, T_k, dtype=torch.bool, device=x.device).triu(1)\n"
                "        weights = scores.masked_fill(ahead, -math.inf).softmax(dim=-1)"
            )
        },
    ),
    "one query for each group": (
        "grouped_query_attention",
        {
            "k = k.repeat_interleave(group, dim=1)": (
                "q = q.reshape(B, self.n_kv_head, group, T, self.head_dim).mean(dim=2)"
            ),
            "v = v.repeat_interleave(group, dim=1)": "pass",
            "y = scores.softmax(dim=-1) @ v": (
                "y = (scores.softmax(dim=-1) @ v).repeat_interleave(group, dim=1)"
            ),
        },
    ),
    "no mask after the first call": (
        "kv_cache",
        {
            "scores.masked_fill(key > query, -math.inf)": (
                "(scores if past else scores.masked_fill(key > query, -math.inf))"
            )
        },
    ),
    "new keys before old ones": (
        "kv_cache",
        {
            "torch.cat([cache[0], k], dim=2)": "torch.cat([k, cache[0]], dim=2)",
            "torch.cat([cache[1], v], dim=2)": "torch.cat([v, cache[1]], dim=2)",
        },
    ),
}


@pytest.mark.recorded
@pytest.mark.parametrize("row", SHOWN_ONCE)
def test_home_shows_no_point_that_grading_takes_away(sides: Sides, row: str) -> None:
    exercise, changes = SHOWN_ONCE[row]
    graded, home = sides.both_results(exercise, changes)
    assert graded.score is not None
    assert home.score is not None
    assert home.score <= graded.score < graded.max_score
