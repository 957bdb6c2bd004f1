"""What is said of an attempt is true of it: mistakes that look alike, each with the sentence that
says what was done.
"""

import pytest

from tests.diagnosis.both_sides import Sides

Changes = dict[str, str]

PLAIN = "return x.transpose(1, 2)"
VIEW = "x = x.view(B, T, n_head, C // n_head)"
REPEATED_KEYS, REPEATED_VALUES = (
    f"{name} = {name}.repeat_interleave(group, dim=1)" for name in "kv"
)
RETURNED = "return self.proj(y), (k, v)"

# exercise, the misconception, a part of its title, and how the reference is edited.
SAID = [
    pytest.param(
        "weight_split",
        "heads_share_weights",
        "one table of weights",
        {"(weights @ v)": "(weights.mean(1, keepdim=True) @ v)"},
        id="weights averaged over heads",
    ),
    pytest.param(
        "cross_attention",
        "heads_share_weights",
        "one table of weights",
        {"(weights @ v)": "(weights.mean(1, keepdim=True) @ v)"},
        id="weights averaged, two sides",
    ),
    pytest.param(
        "grouped_query_attention",
        "kv_heads_misassigned",
        "read other heads of keys or values",
        {
            REPEATED_KEYS: REPEATED_KEYS.replace("k.rep", "k.flip(1).rep"),
            REPEATED_VALUES: REPEATED_VALUES.replace("v.rep", "v.flip(1).rep"),
        },
        id="sets turned round",
    ),
    pytest.param(
        "grouped_query_attention",
        "kv_heads_averaged",
        "averaged or summed the heads of keys or values",
        {
            REPEATED_KEYS: "k = k.mean(1, keepdim=True).repeat_interleave(self.n_head, dim=1)",
            REPEATED_VALUES: "v = v.mean(1, keepdim=True).repeat_interleave(self.n_head, dim=1)",
        },
        id="sets averaged",
    ),
    pytest.param(
        "grouped_query_attention",
        "kv_heads_averaged",
        "averaged or summed the heads of keys or values",
        {REPEATED_VALUES: "v = v.mean(1, keepdim=True).repeat_interleave(self.n_head, dim=1)"},
        id="sets of values averaged",
    ),
    pytest.param(
        "grouped_query_attention",
        "kv_heads_first_only",
        "of keys, of values, or of both",
        {REPEATED_KEYS: "k = k[:, :1].repeat_interleave(self.n_head, dim=1)"},
        id="one head of keys alone",
    ),
    pytest.param(
        "grouped_query_attention",
        "heads_one_width",
        "Only head_dim channels",
        {"self.proj(y.transpose(1, 2).reshape(B, T, C))": "self.proj(y[:, -1])"},
        id="one head of all is projected",
    ),
    pytest.param(
        "grouped_query_attention",
        "kv_cut_wrong_axis",
        "along another axis than its channels",
        {"chunk(2, dim=-1)": "chunk(2, dim=1)"},
        id="tokens cut in two",
    ),
    pytest.param(
        "reshape_dance",
        "heads_reversed",
        "after the split, in the merge, or in both",
        {PLAIN: f"{PLAIN}.flip(1)"},
        id="heads turned round by the split",
    ),
    pytest.param(
        "reshape_dance",
        "reshape_out_of_order",
        "another order than the one in which the numbers lie",
        {VIEW: "", PLAIN: "return x.transpose(1, 2).reshape(B, n_head, T, C // n_head)"},
        id="swapped, then reshaped",
    ),
    pytest.param(
        "fused_qkv",
        "scores_wrong_source",
        "compare something other than queries with keys",
        {"scores = q @ k.transpose(-2, -1)": "scores = q @ v.transpose(-2, -1)"},
        id="values in the keys' place",
    ),
    pytest.param(
        "fused_qkv",
        "heads_mismatched",
        "do not stand in the same order",
        {
            "v = v.view(B, T, self.n_head, self.head_dim).transpose(1, 2)": (
                "v = v.view(B, T, self.n_head, self.head_dim).transpose(1, 2).flip(1)"
            )
        },
        id="heads of values turned round",
    ),
    pytest.param(
        "mha_by_loop",
        "heads_one_width",
        "Only head_dim channels",
        {"    return mha.proj": "        return mha.proj"},
        id="a return inside the loop",
    ),
    pytest.param(
        "mha_by_loop",
        "heads_one_width",
        "Only head_dim channels",
        {"for h in range(mha.n_head):": "for h in range(mha.n_head):\n        heads = []"},
        id="a list made inside the loop",
    ),
    pytest.param(
        "kv_cache",
        "cache_order",
        "mixed up old and new tokens, or keys and values",
        {RETURNED: "return self.proj(y), (v, v)"},
        id="values kept twice",
    ),
    pytest.param(
        "kv_cache",
        "cache_overwritten",
        "does not hold all tokens so far",
        {RETURNED: "return self.proj(y), (k[:, :, -4:], v[:, :, -4:])"},
        id="the last four tokens kept",
    ),
]


@pytest.mark.parametrize(("exercise", "misconception", "sentence", "changes"), SAID)
def test_a_mistake_has_a_sentence_that_is_true_of_it(
    sides: Sides, exercise: str, misconception: str, sentence: str, changes: Changes
) -> None:
    for result in sides.both_results(exercise, changes):
        assert [named.id for named in result.diagnosis] == [misconception]
        assert sentence in result.diagnosis[0].title
