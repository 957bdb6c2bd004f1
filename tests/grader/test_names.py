"""The names that wrong attempts at the real course get: the reference with one line or two in another way, in the box.

What is proved of an attempt, and is not why its values are wrong, is told apart from what is.
"""

import pytest

from manyheads.diagnosis.recording_file import read
from tests.diagnosis.both_sides import Sides, names

Changes = dict[str, str]


def named(sides: Sides, exercise: str, changes: Changes) -> list[str]:
    """Each name, with what may stand in its place."""
    result = sides.graded(exercise, changes)
    assert result.score < result.max_score
    return names(result)


PACKED = {
    "q, k, v = self.qkv(x).split(C, dim=-1)": "q, k, v = self.qkv(x).view(B, T, self.n_head, -1).chunk(3, dim=-1)",
    "y.transpose(1, 2).reshape(B, T, C)": "y.reshape(B, T, C)",
}
NAMED: dict[str, list] = {}  # by the names that are told, in order, with what may stand in their place
NAMED["params_not_registered"] = [  # weights that no optimiser sees
    pytest.param("weight_split", {"self.out_proj = nn.Linear(d_out, d_out)": "self.parts = [nn.Linear(d_out, d_out)]",
        "self.out_proj(context)": "self.parts[0](context)",
        "    def forward(": "    out_proj = property(lambda self: self.parts[0])\n\n    def forward("},
        id="out_proj hidden in a list"),
    pytest.param("self_attention",
        {"T = x.shape[1]": "T = x.shape[1]\n        for name in ('W_query', 'W_key', 'W_value'):\n"
        "            old = getattr(self, name)\n"
        "            new = nn.Linear(old.in_features, old.out_features, old.bias is not None)\n"
        "            setattr(self, name, new.to(x))"}, id="all layers made anew in forward"),
    pytest.param("self_attention", {"self.W_query(x),": "nn.Linear(x.shape[2], self.W_query.out_features).to(x)(x),"},
        id="the queries' layer made anew in forward"),
    pytest.param("weight_split", {"self.out_proj(context)": "nn.Linear(*[context.shape[-1]] * 2).to(x)(context)"},
        id="the output projection made anew in forward"),
    pytest.param("fused_qkv", {"self.proj(y)": "nn.Linear(C, C, bias=False).to(x)(y)"},
        id="the projection of a fused layer made anew in forward"),
    pytest.param("sdpa_equivalence", {"self.qkv(x)": "nn.Linear(C, 3 * C, bias=False).to(x)(x)"},
        id="the fused layer of two paths made anew in forward"),
]  # fmt: skip
NAMED["hard_coded_device"] = [  # what is taken to the CPU
    pytest.param("attention_scores", {"@ v  #": "@ v.cpu()  #"}, id="one argument is brought to the CPU"),
    pytest.param("attention_scores",
        {"return attention_weights(": "q, k, v = q.cpu(), k.cpu(), v.cpu()\n    return attention_weights("},
        id="all arguments are brought to the CPU"),
    pytest.param("causal_mask",
        {"return scores.masked_fill(~": "scores = scores.cpu()\n    return scores.masked_fill(~"},
        id="the scores are brought to the CPU"),
    pytest.param("reshape_dance", {"return x.transpose": "return x.cpu().transpose"}, id="what moves stays there"),
    pytest.param("mha_by_loop", {"range(mha.n_head):": "range(mha.n_head):\n        x = x.cpu()"}, id="in a loop"),
    pytest.param("self_attention", {"return weights @ v": "return (weights @ v).cpu()"}, id="what one head returns"),
    pytest.param("weight_split", {"(context)  # (B": "(context).cpu()  # (B"}, id="what several heads return"),
    pytest.param("fused_qkv", {"(self.proj(y))": "(self.proj(y)).cpu()"}, id="what a fused layer returns"),
]  # fmt: skip
NAMED["dropout_rate_fixed"] = [
    pytest.param("self_attention", {"nn.Dropout(dropout)": "nn.Dropout(0.1)"}, id="0.1, one head"),
    pytest.param("weight_split", {"nn.Dropout(dropout)": "nn.Dropout()"}, id="no rate"),
    pytest.param("fused_qkv", {"nn.Dropout(dropout)": "nn.Dropout(0.1)"}, id="of the weights"),
    pytest.param("fused_qkv", {"resid_dropout = nn.Dropout(dropout)": "resid_dropout = nn.Dropout(0.2)"},
        id="of the output"),
    pytest.param("self_attention", {"self.dropout(torch.softmax(scores, dim=-1))":
        "nn.functional.dropout(scores.softmax(-1), training=self.training)"}, id="the default of the function"),
]  # fmt: skip
NAMED["dropout_extra"] = [
    pytest.param("self_attention", {"return weights @ v": "return self.dropout(weights @ v)"}, id="output"),
    pytest.param("weight_split", {"self.out_proj(context)": "self.out_proj(self.dropout(context))"}, id="merged"),
    pytest.param("fused_qkv",
        {"self.resid_dropout(self.proj(y))": "self.resid_dropout(self.resid_dropout(self.proj(y)))"},
        id="the output's twice"),
    pytest.param("sdpa_equivalence",
        {"self.resid_dropout(self.proj(y))": "self.resid_dropout(self.resid_dropout(self.proj(y)))"},
        id="the output's twice, on both paths"),
]  # fmt: skip
NAMED["dropout_always_on dropout_rate_fixed"] = [  # with neither the rate nor the mode it has two faults
    pytest.param("self_attention",
        {"self.dropout(torch.softmax(scores, dim=-1))": "nn.functional.dropout(scores.softmax(-1))"}, id="one head"),
    pytest.param("weight_split",
        {"self.dropout(scores.softmax(dim=-1))": "nn.functional.dropout(scores.softmax(-1), 0.1)"}, id="several heads"),
    pytest.param("fused_qkv",
        {"self.attn_dropout(scores.softmax(dim=-1))": "nn.functional.dropout(scores.softmax(-1))"}, id="a fused layer"),
    pytest.param("fused_qkv", {"self.resid_dropout(self.proj(y))": "nn.functional.dropout(self.proj(y))"}, id="the output"),
]  # fmt: skip
NAMED[""] = [  # noise is no dropout
    pytest.param("self_attention", {"return weights @ v": "return weights @ v + torch.randn_like(v)"}, id="one head"),
    pytest.param("fused_qkv", {"y = weights @ v": "y = weights @ v + torch.randn_like(v)"}, id="a fused layer"),
]
NAMED["proj_twice"] = [
    pytest.param("weight_split", {"self.out_proj(context)": "self.out_proj(self.out_proj(context))"},
        id="several heads"),
    pytest.param("mha_by_loop",
        {"mha.proj(torch.cat(heads, dim=-1))": "mha.proj(mha.proj(torch.cat(heads, dim=-1)))"}, id="by loop"),
    pytest.param("fused_qkv", {"self.proj(y)": "self.proj(self.proj(y))"}, id="a fused layer"),
    pytest.param("sdpa_equivalence", {"self.proj(y)": "self.proj(self.proj(y))"}, id="two paths"),
]  # fmt: skip
NAMED["input_mutated"] = [
    pytest.param("mha_by_loop", {"    heads = []": "    w_q.data.div_(math.sqrt(hd))\n    heads = []",
        "/ math.sqrt(hd)": "* 1"}, id="who writes into the weights has cut no gradient"),
]  # fmt: skip
NAMED["hard_coded_shape"] = [
    pytest.param("sliding_window", {"scores.masked_fill(~mask": "scores.masked_fill(~mask[None, None]"},
        id="a mask of four axes, for scores of two, three and four"),
    pytest.param("attention_scores",
        {"q @ k.transpose(-2, -1) / math": "torch.einsum('b...qc,b...kc->b...qk', q, k) / math"},
        id="one leading axis at least"),
]  # fmt: skip
NAMED["path_difference"] = [
    pytest.param("sdpa_equivalence",
        {"        module.eval()\n": "        module.double().eval()\n        x = x.double()\n"},
        id="a module that is compared in float64, and left so"),
]  # fmt: skip
NAMED["tile_max_not_carried|tile_no_rescale"] = [
    pytest.param("tiled_attention", {"(piece - higher).exp()": "(piece - piece.amax(-1, keepdim=True)).exp()"},
        id="a block measured from its own maximum"),
]  # fmt: skip
AN_AXIS_MORE = {"device=device).tril()": "device=device).tril()[None]"}
NAMED["interface"] = [pytest.param("causal_mask", AN_AXIS_MORE, id="a mask with an axis more")]
ROWS = [pytest.param(told, *row.values, id=row.id) for told, rows in NAMED.items() for row in rows]


@pytest.mark.parametrize(("told", "exercise", "changes"), ROWS)
def test_it_is_named(sides: Sides, told: str, exercise: str, changes: Changes) -> None:
    assert named(sides, exercise, changes) == told.split()


@pytest.mark.parametrize("exercise", ["self_attention", "weight_split"])
def test_two_weights_that_are_one_tensor_have_no_cut_gradient(sides: Sides, exercise: str) -> None:
    made = "self.dropout = nn.Dropout(dropout)"
    result = sides.graded(exercise, {made: f"{made}\n        self.W_key.weight = self.W_query.weight"})
    assert result.score < result.max_score
    assert [each.id for each in (*result.diagnosis, *result.also)] == ["params_not_registered"]


@pytest.mark.parametrize("change", [
    pytest.param({"@ v  #": "@ v.cpu().to(v.device)  #"}, id="there and back"),
    pytest.param({"return attention_weights(": "print(q.tolist())\n    return attention_weights("}, id="printed"),
])  # fmt: skip
def test_numbers_may_be_looked_at_on_the_cpu(sides: Sides, change: Changes) -> None:
    result = sides.graded("attention_scores", change)
    assert (result.score, result.diagnosis) == (result.max_score, ())


SIZES = [
    pytest.param("attention_scores", {"return q @": "q, k = q.view(2, 10, -1), k.view(2, 10, -1)\n    return q @"}, id="B and T"),
    pytest.param("causal_mask", {"causal_mask(scores.shape[-1], ": "causal_mask(20, "}, id="a mask of 20 tokens"),
    pytest.param("self_attention", {"return weights @ v": "return (weights @ v).view(6, 9, -1)"}, id="an unusual batch"),
    pytest.param("self_attention", {"~self.mask[:T, :T]": "~self.mask[:8, :8]"}, id="a mask cut to 8 tokens"),
    pytest.param("reshape_dance", {"return y.transpose": "y = torch.stack([y[:, h] for h in range(11)], 1)\n    return y.transpose"}, id="11 heads"),
    pytest.param("weight_split", {"d_out // num_heads": "d_out // 6", "self.num_heads = num_heads": "self.num_heads = 6"}, id="6 heads"),
    pytest.param("mha_by_loop", {"T, C, hd = x.shape[1],": "x = x.view(2, 16, -1)\n    T, C, hd = x.shape[1],"}, id="16 tokens"),
    pytest.param("fused_qkv", {"self.head_dim)": "24)"}, id="heads of 24 channels"),
    pytest.param("sdpa_equivalence", {"view(B, T, self.n_head, self.head_dim)": "view(32, 128, self.n_head, self.head_dim)"}, id="32 sequences of 128 tokens"),
    pytest.param("sdpa_equivalence", {"view(B, T, self.n_head, self.head_dim)": "view(B, T, self.n_head, 64)"}, id="heads of 64 channels"),
]  # fmt: skip


@pytest.mark.parametrize(("exercise", "changes"), SIZES)
def test_sizes_that_stand_in_the_text(sides: Sides, exercise: str, changes: Changes) -> None:
    (name,) = named(sides, exercise, changes)
    assert "hard_coded_shape" in name.split("|")


IN_ANOTHER_WAY = [
    pytest.param("mha_by_loop", {"x @ w_v[own]": "x.detach() @ w_v[own]"}, ["gradient_cut"],
        id="the values' gradient is lost on the way to x"),
    pytest.param("mha_by_loop", {"x @ w_v[own]": "x.detach() @ w_v[own]", "math.sqrt(hd)": "hd"},
        ["gradient_cut", "scale_no_sqrt"], id="the values' gradient is lost, and the scale is wrong"),
    pytest.param("mha_by_loop",
        {"scores = scores.masked_fill(~visible, -math.inf)": "scores = scores - 5.0 * (~visible).to(x.dtype)"},
        ["mask_weak_fill"], id="a small number is subtracted in place of minus infinity"),
    pytest.param("mha_by_loop", {
        "scores = scores.masked_fill(~visible, -math.inf)": "scores = scores - 10 * (~visible).to(x.dtype)",
        "mha.qkv.weight.split(C, dim=0)": "mha.qkv.weight.view(mha.n_head, 3, hd, C).transpose(0, 1).reshape(3, C, C)"},
        ["mask_weak_fill", "qkv_packed_per_head"], id="a small number is subtracted, and the rows are read per head"),
    pytest.param("fused_qkv",
        {"~self.visible[:T, :T]": "~self.visible[:T, :T].tril(-1)", "dim=-1))": "dim=-1).nan_to_num())"},
        ["mask_excludes_self"], id="a row that sees nobody is made a row of zeros"),
    pytest.param("self_attention", {"torch.softmax(scores, dim=-1)": "mean / mean.sum(2, keepdim=True)",
        'scores = scores.masked_fill(~self.mask[:T, :T], float("-inf"))':
            "mean = (scores - scores.amax(2, keepdim=True)).exp() * self.mask[:T, :T].tril(-1)",
        "math.sqrt(q.shape[-1])": "q.shape[-1]"}, ["mask_excludes_self", "scale_no_sqrt"],
        id="a softmax by hand over the past without the token itself, and the scale"),
    pytest.param("weight_split", {"self.W_query(x), self.W_key(x), self.W_value(x)":
        "(torch.einsum('nti,io->nto', x, w.weight) + (0 if w.bias is None else w.bias) "
        "for w in (self.W_query, self.W_key, self.W_value))"}, ["weight_not_transposed"],
        id="untransposed weights by einsum, whose exception is its own"),
    pytest.param("fused_qkv", {"scores.masked_fill(~self.visible[:T, :T], -math.inf)":
        "torch.where(self.visible.expand_as(scores), scores, -math.inf)"}, ["mask_not_sliced"],
        id="a whole mask that fits no shorter sequence, not even one of a single token"),
    pytest.param("fused_qkv", {"~self.visible[:T, :T], -math.inf": "~self.visible[:T], torch.finfo(x.dtype).min",
        "y = weights @ v": "y = torch.einsum('bhij, bhjd -> bhid', weights, v)"}, ["mask_not_sliced"],
        id="a mask cut in one direction, by einsum, which stretches a single token"),
    pytest.param("sdpa_equivalence", {"-math.inf)\n": "0.0)\n",
        "y = self.attn_dropout(scores.softmax(dim=-1))": "y = self.attn_dropout(scores / scores.sum(-1, keepdim=True))",
        "q @ k.transpose(-2, -1)": "torch.einsum('bhid,bhjd->bhij', q, k)"}, ["softmax_missing"],
        id="a plain division where the sum comes near nothing"),
    pytest.param("causal_mask", {"causal_mask(scores.shape[-1], ": "causal_mask(16, "}, ["mask_not_sliced"],
        id="a mask of 16 tokens"),
    # What real code gets wrong.
    pytest.param("self_attention", {"math.sqrt(q.shape[-1])": "q.shape[0] ** 0.5"}, ["scale_wrong_axis"], id="a scale from the batch"),
    pytest.param("attention_scores", {"math.sqrt(q.shape[-1])": "math.isqrt(q.shape[-1])"}, ["scale_rounded"], id="a whole root"),
    pytest.param("fused_qkv", {"/ math.sqrt(self.head_dim)": "// math.sqrt(self.head_dim)"}, ["scale_rounded"], id="scores divided with two slashes"),
    pytest.param("self_attention", {'float("-inf")': "scores.min() - 1"}, ["mask_weak_fill"], id="a fill just below the smallest score"),
    pytest.param("causal_mask", {'float("-inf")': "scores.min().item() - 3"}, ["mask_weak_fill"], id="a fill three below the smallest score"),
    pytest.param("weight_split", {"scores.softmax(dim=-1)": "scores.flatten(0, 1).softmax(0).view_as(scores)"}, ["softmax_wrong_axis"], id="a softmax over batch and heads"),
    pytest.param("self_attention", {"softmax(scores, dim=-1)": "softmax(scores, dim=0)", "scores = scores.masked_fill(~self.mask[:T, :T], float(\"-inf\"))": "scores = scores + torch.zeros(T, T, device=x.device).masked_fill(~self.mask[:T, :T], -math.inf)"}, ["softmax_wrong_axis"], id="the batch's softmax of an added mask"),
    pytest.param("fused_qkv", {"~self.visible[:T, :T]": "~self.visible[:B, :B]"}, ["size_wrong_axis"], id="a mask as large as the batch"),
    pytest.param("reshape_dance", {"B, nh, T, hd = y.shape\n    return y.transpose(1, 2)": "y = y.transpose(1, 2)\n    B, nh, T, hd = y.shape\n    return y"}, ["size_wrong_axis"], id="sizes of a tensor that is transposed already"),
    pytest.param("weight_split", {"if d_out % num_heads != 0": "if d_in % num_heads != 0"}, ["refuses_allowed"], id="the wrong width is asked about"),
    pytest.param("fused_qkv", {"if n_embd % n_head != 0": "if 3 * n_embd % n_head != 0"}, ["divisibility_unchecked"], id="three times the width is asked about"),
    pytest.param("weight_split", {"return self.out_proj(context)": "return sum(nn.functional.linear(c, w, self.out_proj.bias) for c, w in zip(context.chunk(self.num_heads, 2), self.out_proj.weight.chunk(self.num_heads, 1)))"}, ["proj_bias"], id="a bias for each head"),
    pytest.param("fused_qkv", {"y = weights @ v": "y = (weights @ v.transpose(1, 2).reshape(B, 1, T, C)).mean(1)", "y = y.transpose(1, 2).reshape(B, T, C)": "pass"}, ["heads_averaged"], id="the mean of heads with all values"),
    pytest.param("causal_mask", {"causal_mask(scores.shape[-1], ": "causal_mask(scores.shape[0], "}, ["size_wrong_axis"], id="a mask as large as the first axis"),
    pytest.param("mha_by_loop", {"mha.qkv.weight.split(C, dim=0)": "mha.qkv.split(C, dim=0)"}, ["layer_not_called"], id="a layer in place of its weight"),
    pytest.param("self_attention", {"return weights @ v": "return (weights @ v).round(decimals=4)"}, ["output_rounded"], id="an answer that is rounded, and has no gradient"),
    pytest.param("causal_mask", {'scores.masked_fill(~mask, float("-inf"))': 'scores + mask.to(scores).masked_fill(~mask, float("-inf"))'}, ["mask_added"], id="a mask of one and minus infinity"),
    pytest.param("fused_qkv", PACKED, ["qkv_packed_per_head", "wrong_view_both"], id="rows read per head, and a merge without its transpose"),
    pytest.param("weight_split", {"(weights @ v).transpose(1, 2)": "(weights @ v).permute(1, 2, 0, 3)", "bias=qkv_bias": "bias=True"}, ["merge_wrong_axes", "proj_bias"], id="sequences mixed up, which is no dropout, and a bias"),
    pytest.param("fused_qkv", {"y.transpose(1, 2).reshape(B, T, C)": "y.reshape(self.n_head, B, T, -1).permute(1, 2, 0, 3).reshape(B, T, C)", "self.attn_dropout(": "(", "self.resid_dropout(": "("}, ["dropout_missing", "heads_mix_batch"], id="sequences mixed up, and no dropout"),
    pytest.param("attention_scores", {"return torch.softmax(scores, dim=-1)": "return (scores - scores.logsumexp(-1, keepdim=True).detach()).exp()"}, ["gradient_cut"], id="a sum that is detached in a softmax by hand"),
    pytest.param("sliding_window", {"torch.softmax(scores.masked_fill(~mask, float(\"-inf\")), dim=-1)": "(mask * scores.exp()) / (mask * scores.exp()).sum(-1, keepdim=True).data"}, ["gradient_cut"], id="the data of a sum in a window's softmax"),
    pytest.param("causal_mask", {"torch.softmax(mask_scores(scores, mask), dim=-1)": "(mask_scores(scores, mask) - mask_scores(scores, mask).logsumexp(-1, keepdim=True).detach()).exp()"}, ["gradient_cut"], id="a sum that is detached behind the mask"),
    pytest.param("sdpa_equivalence", {", is_causal=True": ", attn_mask=torch.ones(T, T, dtype=torch.bool, device=x.device).tril()"}, ["materialised"], id="a mask that is made for the fused function"),
    pytest.param("mha_by_loop", {"x @ w_q[own].T, x @ w_k[own].T": "x @ w_q[own], x @ w_k[own]"}, ["weight_not_transposed"], id="rows of a head as they are stored"),
    pytest.param("fused_qkv", {"q, k, v = self.qkv(x).split(C, dim=-1)": "z = self.qkv(x).view(B, T, 3, self.n_head, self.head_dim).permute(0, 2, 3, 1, 4)\n        q, k, v = (t.transpose(1, 2) for t in z.reshape(3, B, self.n_head, T, -1))"}, ["qkv_mix_batch"], id="q, k and v from the batch's axis"),
    pytest.param("kv_cache", {"cache=None)": "cache={})", "past = 0 if cache is None else cache[0].shape[2]": "past = cache['k'].shape[2] if 'k' in cache else 0", "if cache is not None": "if past", "cat([cache[0]": "cat([cache['k']", "cat([cache[1]": "cat([cache['v']", "return self.proj(y), (k, v)": "cache['k'], cache['v'] = k, v\n        return self.proj(y), cache"}, ["cache_shared"], id="a cache kept in a default that knows no None"),
    pytest.param("mha_by_loop", {"torch.cat(heads, dim=-1)": "torch.cat(list(torch.stack(heads, dim=1).reshape(mha.n_head, *x.shape[:2], mha.head_dim)), dim=-1)"}, ["heads_mix_batch"], id="heads cut anew along the batch"),
    pytest.param("fused_qkv", {"q, k, v = self.qkv(x).split(C, dim=-1)": "q, k, v = (x @ part.T for part in self.qkv.weight.T.reshape(3, C, C))"}, ["qkv_sliced_by_columns"], id="the fused weight turned before it is cut"),
    pytest.param("cross_attention", {"keep[:, None, None, :]": "torch.nn.functional.pad(keep[:, : x.shape[1]], (0, max(0, x.shape[1] - keep.shape[1])), value=True)[:, None, :, None]"}, ["keep_on_queries"], id="keep cut or padded to the queries"),
    pytest.param("fused_qkv", {"if self.block_size < T:": "if self.block_size > T:"}, ["refuses_allowed"], id="the limit asked the wrong way round"),
    pytest.param("self_attention", {"if self.context_length < T:": "if self.context_length <= T:"}, ["refuses_allowed"], id="the limit itself refused"),
    pytest.param("weight_split", {"if self.context_length < T:": "if T:"}, ["refuses_allowed"], id="every length refused"),
    pytest.param("fused_qkv", {"if n_embd % n_head != 0:": "if n_embd % n_head == 0:"}, ["divisibility_unchecked", "refuses_allowed"], id="divisible heads refused"),
    pytest.param("sliding_window", {"if T_q > T_k:": "if T_q >= T_k:"}, ["refuses_allowed"], id="as many queries as keys refused"),
    pytest.param("kv_cache", {"if past + T > self.block_size:": "if past + T >= self.block_size:", " / math.sqrt(self.head_dim)": ""}, ["refuses_allowed", "scale_missing"], id="the limit refused, and no scale"),
    pytest.param("self_attention", {"scores = q @ k.transpose": "assert q.shape == (x.shape[0], T, 1)\n        scores = q @ k.transpose"}, [], id="an assertion of one's own about the queries"),
    pytest.param("kv_cache", {"/ math.sqrt(self.head_dim)": "* 0.37"}, ["scale_constant"], id="any constant beside a cache"),
    pytest.param("kv_cache", {"key > query, -math.inf": "key > query, -4.4"}, ["mask_weak_fill"], id="any fill beside a cache"),
    pytest.param("tiled_attention", {"/ math.sqrt(hd)": "* 0.37"}, ["scale_constant"], id="any constant in tiles"),
    pytest.param("tiled_attention", {"key > query, -math.inf": "key > query, -4.4"}, ["mask_weak_fill"], id="any fill in tiles"),
]  # fmt: skip


@pytest.mark.parametrize(("exercise", "changes", "expected"), IN_ANOTHER_WAY)
def test_one_mistake_written_in_another_way(sides: Sides, exercise: str, changes: Changes, expected: list[str]) -> None:
    assert sorted(name.split("|")[0] for name in named(sides, exercise, changes)) == expected


HALF_WRITTEN = {"if n_embd % n_head != 0:": "if False:", "B, T, C = x.shape\n": "raise NotImplementedError\n"}


def test_of_a_half_written_class_what_is_wrong_is_told_and_not_that_a_method_is_not_written(sides: Sides) -> None:
    result = sides.graded("fused_qkv", HALF_WRITTEN)
    assert result.diagnosis[0].id == "divisibility_unchecked"
    assert result.functions[0].check.startswith("refuses an n_embd that n_head does not divide")


BODY = """weights = torch.softmax(x @ x.transpose(-2, -1), dim=-1)  # (..., T, T)
    return weights @ x"""
SKIPPED = {BODY: "raise NotImplementedError"}


@pytest.mark.parametrize(("changes", "named"), [
    pytest.param({"return torch.softmax(scores, dim=-1)": "return (scores - scores.logsumexp(-1, keepdim=True).detach()).exp()"}, "gradient_cut", id="a sum that is detached"),
    pytest.param({"return torch.softmax(scores, dim=-1)": "return torch.softmax(scores.float(), dim=-1)"}, "hard_coded_dtype", id="float32"),
])  # fmt: skip
def test_a_check_that_stops_at_what_is_not_written_yet_proves_what_is_wrong_beside_it(sides, changes, named):
    result = sides.graded("attention_scores", {**SKIPPED, **changes})
    assert [each.id for each in result.diagnosis] == [named, "stub_untouched"]


UNLISTED = {"torch.softmax(scores, dim=-1)": "torch.softmax(scores.clamp(max=0.3), dim=-1)"}
PLAIN_DROPOUT = "self.dropout(torch.softmax(scores, dim=-1))"


@pytest.mark.parametrize(("changes", "also"), [
    pytest.param({PLAIN_DROPOUT: "torch.softmax(scores.clamp(max=0.3), dim=-1)"}, "dropout_missing",
        id="a dropout never used"),
    pytest.param({**UNLISTED, "weights @ v ": "weights @ v.detach() "}, "gradient_cut", id="a cut gradient"),
    pytest.param({**UNLISTED,
        "        mask = torch.ones": "        self.more = nn.Linear(2, 2)\n        mask = torch.ones"},
        "params_extra", id="a layer too many"),
])  # fmt: skip
def test_a_fault_beside_one_that_nobody_listed_is_told_apart(sides: Sides, changes: Changes, also: str) -> None:
    result = sides.graded("self_attention", changes)
    assert ([d.id for d in result.diagnosis], [d.id for d in result.also]) == ([], [also])


@pytest.mark.parametrize(("changes", "names"), [
    pytest.param({PLAIN_DROPOUT: "nn.functional.dropout(torch.softmax(scores, dim=-1))"},
        ["dropout_always_on", "dropout_rate_fixed"], id="chance decides the values"),
    pytest.param({"        T = x.shape[1]": "        x *= 3\n        T = x.shape[1]"}, ["input_mutated"],
        id="the argument is scaled"),
    pytest.param({PLAIN_DROPOUT: "torch.softmax(scores, dim=-1)"}, ["dropout_missing"], id="nothing else is wrong"),
])  # fmt: skip
def test_what_explains_the_values_is_named(sides: Sides, changes: Changes, names: list[str]) -> None:
    result = sides.graded("self_attention", changes)
    assert ([d.id for d in result.diagnosis], result.also) == (names, ()), [c.id for c in result.checks if c.score == 0]


def test_a_change_in_place_of_a_tensor_of_ones_own_is_no_changed_argument(sides: Sides) -> None:
    changes = {"    return torch.softmax(scores, dim=-1)": "    return torch.softmax(scores, dim=-1).mul_(1.0)"}
    result = sides.graded("attention_scores", changes)
    assert [c.outcome for c in result.checks if c.outcome != "passed"] == ["error"]
    assert (result.diagnosis, result.also) == ((), ())


def test_at_home_it_is_told_apart_where_a_recorded_call_is_asked_by_no_visible_check(sides: Sides) -> None:
    recorded = read(sides.exercise("sdpa_equivalence").fingerprints)
    assert len({call for check in recorded.checks for call in check.calls}) < len(recorded.calls)
    changes = {
        "        q, k, v = self.qkv(x)": "        x.mul_(1.5)\n        q, k, v = self.qkv(x)",
        "        y = y.transpose(1, 2)": "        y = y.clamp(max=0.01).transpose(1, 2)",
    }
    result = sides.home("sdpa_equivalence", changes)
    assert "input_mutated" in [d.id for d in (*result.diagnosis, *result.also)]


def test_at_home_the_order_of_a_students_own_layers_changes_no_name(sides: Sides) -> None:
    first = "self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)"
    second = "self.proj = nn.Linear(n_embd, n_embd, bias=False)"
    changes = {"self.proj(y)": "y", first: "self.first = 0", second: f"{second}\n        {first}"}
    assert names(sides.home("sdpa_equivalence", changes)) == ["proj_missing"]


@pytest.mark.parametrize("changes", [
    pytest.param({"return weights @ v": "return (weights @ v).cpu()"}, id="what is returned is on the CPU"),
    pytest.param({"~self.mask[:T, :T]": "~self.mask[:T, :T].cpu()"}, id="a mask is taken there"),
])  # fmt: skip
def test_at_home_a_fixed_device_is_proved_by_what_meets(sides: Sides, changes: Changes) -> None:
    assert names(sides.home("self_attention", changes)) == ["hard_coded_device"]
