"""An answer that uses no scores earns at most a fifth of the points of an exercise.

And `course check` never shows more points than grading gives.
"""

from pathlib import Path

import pytest

from tests.diagnosis.both_sides import Sides
from tests.make import edit_text

SHARED = (Path(__file__).parent / "attempts" / "without_attention.py").read_text(encoding="utf-8")
MEAN = (
    "return t.cumsum(-2) / torch.arange(1, t.shape[-2] + 1, device=t.device, "
    "dtype=t.dtype)[:, None]"
)
DECAY = """age = torch.arange(t.shape[-2], device=t.device).to(t.dtype)
    age = (age[:, None] - age).tril()
    shares = (0.7**age).tril()
    return (shares / shares.sum(-1, keepdim=True)) @ t"""
# The code of `past` in SHARED, and the value of GATE there
SHARES_AND_GATES = {
    "a running mean": (MEAN, "0"),
    "a running mean with a small gate": (MEAN, "1e-3"),
    "a decay by distance with a large gate": (DECAY, "0.5"),
}
# Points that only a hidden check takes: the one of GPT-2's sizes also tests the class, but only if
# the heads of an attempt differ from those of the class.
HIDDEN_POINTS = {"fused_qkv": 0.25}
# With a large gate each weight depends on its own score or key. The shares are wrong, but that is
# a use of the scores.
USES_SCORES = {"causal_mask", "cross_attention"}

WEIGHED = "scores.softmax(dim=-1) @ v"
WITHOUT_ATTENTION = {  # how the reference is edited
    "attention_scores": {
        "return weights @ x": "return whole(x, x, x).expand_as(x)",
        "return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])": "return summed(q, k)",
        "return torch.softmax(scores, dim=-1)": (
            "return even(scores, torch.ones_like(scores) / scores.shape[-1])"
        ),
        "return attention_weights(attention_scores(q, k)) @ v": (
            "return whole(q, k, v) + 0 * q.sum(-1, keepdim=True)"
        ),
    },
    "causal_mask": {
        ", device=device).tril()": ", device=device)",
        'scores.masked_fill(~mask, float("-inf"))': "2 * scores + GATE * torch.sin(scores)",
        "return torch.softmax(mask_scores(scores, mask), dim=-1)": (
            "shares = torch.ones_like(scores).tril()\n"
            "    return even(scores, shares / shares.sum(-1, keepdim=True))"
        ),
    },
    "self_attention": {"return weights @ v": "return causal(q, k, v)"},
    "weight_split": {"(weights @ v)": "causal(q, k, v)"},
    "mha_by_loop": {WEIGHED: "causal(q, k, v)"},
    "fused_qkv": {"weights @ v": "causal(q, k, v)"},
    "sdpa_equivalence": {
        "F.scaled_dot_product_attention(q, k, v, dropout_p=dropout_p, is_causal=True)": (
            "causal(q, k, v)"
        ),
        "self.attn_dropout(scores.softmax(dim=-1)) @ v": "causal(q, k, v)",
    },
    "cross_attention": {
        "y = (weights @ v).transpose(1, 2)": (
            "shares = torch.ones(B, T_k).to(x) if keep is None else keep.to(x)\n"
            "        shares = (shares / shares.sum(-1, keepdim=True))[:, None, None]\n"
            "        y = gated(q, shares @ k, shares @ v, shares @ (v * k)).transpose(1, 2)"
        )
    },
    "grouped_query_attention": {
        WEIGHED: "causal(q, k, v)",
        "return numbers * bytes_per_number": "return 0",
    },
    "rotary": {
        "return turned.flatten(-2)": "return 2 * x + GATE * torch.sin(x)",
        "return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])": "return summed(q, k)",
        "return pairs.transpose(1, 2).reshape(C, C_in)": "return 2 * weight",
    },
    "kv_cache": {"y = weights @ v": "y = causal(q, k, v)"},
    "sliding_window": {
        "(key <= query) & (key > query - window)": "(key >= 0) & (query >= 0)",
        "return weights @ v": (
            "past_keys = k.shape[-2] - q.shape[-2]\n"
            "    shares = mask.to(q).tril(past_keys).triu(past_keys - window + 1)\n"
            "    shares = shares / shares.sum(-1, keepdim=True)\n"
            "    return gated(q, shares @ k, shares @ v, v[..., past_keys:, :])"
        ),
    },
    "tiled_attention": {
        "return torch.cat(parts, dim=-1)": (
            "return even(scores, torch.ones_like(scores) / scores.shape[-1])"
        ),
        "return torch.cat(answers, dim=-2), torch.cat(sums, dim=-1)": (
            "return causal(q, k, v), q.sum(-1) + GATE * torch.sin((q * past(k)).sum(-1))"
        ),
    },
}


@pytest.mark.parametrize(
    ("exercise", "way"),
    [
        pytest.param(exercise, way, id=f"{exercise}: {way}")
        for exercise in WITHOUT_ATTENTION
        for way, (_, gate) in SHARES_AND_GATES.items()
        if gate != "0.5" or exercise not in USES_SCORES
    ],
)
def test_an_answer_without_attention_earns_at_most_a_fifth(
    sides: Sides, exercise: str, way: str
) -> None:
    past, gate = SHARES_AND_GATES[way]
    edited = sides.source(exercise, WITHOUT_ATTENTION[exercise]).text
    shared = edit_text(SHARED, ("GATE = 1e-3\n", f"GATE = {gate}\n"), (MEAN, past))
    graded, home = sides.both_results(exercise, f"{edited}\n\n{shared}")
    assert home.score <= graded.score + HIDDEN_POINTS.get(exercise, 0.0)
    assert graded.score <= graded.max_score / 5


HIDE = "scores = scores.masked_fill("
CAPPED = {HIDE: f"scores = 3 * torch.tanh(scores / 3)\n        {HIDE}"}
VIEWED = ".view(B, T, self.n_head, self.head_dim).transpose(1, 2)  # (B, nh, T, hd)"
JOINED = {"y.transpose(1, 2).reshape(B, T, C)": "y.reshape(B, T, C)"}
OVER_HEADS = {
    VIEWED: ".view(B, T, self.n_head, self.head_dim)",
    "self.visible[:T, :T]": "self.visible[: self.n_head, : self.n_head]",
}


# `least_share` is the lowest share of the points. It is 0 if `course check` once showed points that
# grading took away.
@pytest.mark.parametrize(
    ("exercise", "changes", "least_share"),
    [
        pytest.param("fused_qkv", CAPPED, 0.6, id="a soft cap"),
        pytest.param(
            "attention_scores",
            {
                "return torch.softmax(scores, dim=-1)": (
                    "return scores.exp() / (1 + scores.exp().sum(-1, keepdim=True))"
                )
            },
            0.5,
            id="one added to what the softmax divides by",
        ),
        pytest.param(
            "sliding_window",
            {"query - window)": "query - window // 3)"},
            0.3,
            id="a third of the window",
        ),
        pytest.param(
            "self_attention", {"return weights @ v": "return v"}, 0, id="weights that are not used"
        ),
        pytest.param(
            "causal_mask",
            {"device=device).tril()": "device=device).tril().flip(1)"},
            0.5,
            id="a mask turned round",
        ),
        pytest.param(
            "fused_qkv",
            {VIEWED: ".reshape(B, self.n_head, T, self.head_dim)"} | JOINED,
            0.5,
            id="heads viewed straight, there and back",
        ),
        pytest.param(
            "fused_qkv", OVER_HEADS | JOINED, 0.5, id="attention over the heads of each token"
        ),
        pytest.param(
            "cross_attention",
            {
                "weights = scores.softmax(dim=-1)": (
                    "ahead = torch.ones(T_q, T_k, dtype=torch.bool, device=x.device).triu(1)\n"
                    "        weights = scores.masked_fill(ahead, -math.inf).softmax(dim=-1)"
                )
            },
            0,
            id="a causal mask, and padding that comes first",
        ),
        pytest.param(
            "grouped_query_attention",
            {
                "k = k.repeat_interleave(group, dim=1)": (
                    "q = q.reshape(B, self.n_kv_head, group, T, self.head_dim).mean(dim=2)"
                ),
                "v = v.repeat_interleave(group, dim=1)": "pass",
                f"y = {WEIGHED}": f"y = ({WEIGHED}).repeat_interleave(group, dim=1)",
            },
            0,
            id="one query for each group",
        ),
        pytest.param(
            "kv_cache",
            {
                "scores.masked_fill(key > query, -math.inf)": (
                    "(scores if past else scores.masked_fill(key > query, -math.inf))"
                )
            },
            0,
            id="no mask after the first call",
        ),
        pytest.param(
            "kv_cache",
            {
                "torch.cat([cache[0], k], dim=2)": "torch.cat([k, cache[0]], dim=2)",
                "torch.cat([cache[1], v], dim=2)": "torch.cat([v, cache[1]], dim=2)",
            },
            0,
            id="new keys before old ones",
        ),
    ],
)
def test_a_wrong_use_of_scores_keeps_the_least_share_of_the_points(
    sides: Sides, exercise: str, changes: dict[str, str], least_share: float
) -> None:
    graded, home = sides.both_results(exercise, changes)
    assert least_share * graded.max_score <= graded.score < graded.max_score
    assert home.score <= graded.score
