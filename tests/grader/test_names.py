"""What wrong attempts at the real course are called, in the box and at home: the reference with one
thing in another way.

What is proved of an attempt, and is not why its values are wrong, is told apart from what is.
"""

import pytest

from manyheads.diagnosis.recording_file import read
from tests.diagnosis.both_sides import Sides, names

Changes = dict[str, str]


PACKED = {
    "q, k, v = self.qkv(x).split(C, dim=-1)": (
        "q, k, v = self.qkv(x).view(B, T, self.n_head, -1).chunk(3, dim=-1)"
    ),
    "y.transpose(1, 2).reshape(B, T, C)": "y.reshape(B, T, C)",
}
AN_AXIS_MORE = {"device=device).tril()": "device=device).tril()[None]"}
SWAPPED = {
    ("self.num_heads, self.head_dim).transpose(1, 2)"): (
        "self.head_dim, self.num_heads).transpose(1, 2)"
    )
}
ON_THE_MODULE = {
    "past = 0 if cache is None else cache[0].shape[2]": "cache = getattr(self, 'kept', None)\n"
    "        past = 0 if cache is None or cache[0].shape[0] != B else cache[0].shape[2]",
    "if cache is not None:": "if past:",
    "query = torch.arange": "self.kept = (k.detach(), v.detach())\n        query = torch.arange",
}
KEEPS_MASKS = {
    'self.register_buffer("mask", mask)': "self.masks = {}",
    "T = x.shape[1]\n": (
        "T = x.shape[1]\n        self.masks.setdefault(T, torch.ones(T, T, dtype=torch.bool, "
        "device=x.device).tril())\n"
    ),
    "~self.mask[:T, :T],": "~self.masks[T],",
}
# The exercise and what is wrong: the names that are told, in order, and what stands there in place
# of the reference's text.
TOLD: dict[str, tuple[str, Changes]] = {
    # all scores may lie far below 0, and then exp gives 0 for each of them
    "tiled_attention: the running maximum starts at 0": (
        "tile_overflow",
        {"torch.full_like(scores[..., :1], -math.inf)": "torch.zeros_like(scores[..., :1])"},
    ),
    # weights that no optimiser sees
    "weight_split: out_proj hidden in a list": (
        "params_not_registered",
        {
            "self.out_proj = nn.Linear(d_out, d_out)": "self.parts = [nn.Linear(d_out, d_out)]",
            "self.out_proj(context)": "self.parts[0](context)",
            "    def forward(": (
                "    out_proj = property(lambda self: self.parts[0])\n\n    def forward("
            ),
        },
    ),
    "self_attention: all layers made anew in forward": (
        "params_not_registered",
        {
            "T = x.shape[1]": (
                "T = x.shape[1]\n        for name in ('W_query', 'W_key', 'W_value'):\n"
                "            old = getattr(self, name)\n"
                "            new = nn.Linear(old.in_features, old.out_features, old.bias is "
                "not None)\n            setattr(self, name, new.to(x))"
            )
        },
    ),
    "self_attention: the queries' layer made anew in forward": (
        "params_not_registered",
        {"self.W_query(x),": "nn.Linear(x.shape[2], self.W_query.out_features).to(x)(x),"},
    ),
    "weight_split: the output projection made anew in forward": (
        "params_not_registered",
        {"self.out_proj(context)": "nn.Linear(*[context.shape[-1]] * 2).to(x)(context)"},
    ),
    "fused_qkv: the projection of a fused layer made anew in forward": (
        "params_not_registered",
        {"self.proj(y)": "nn.Linear(C, C, bias=False).to(x)(y)"},
    ),
    "sdpa_equivalence: the fused layer of two paths made anew in forward": (
        "params_not_registered",
        {"self.qkv(x)": "nn.Linear(C, 3 * C, bias=False).to(x)(x)"},
    ),
    # what is taken to the CPU
    "attention_scores: one argument is brought to the CPU": (
        "hard_coded_device",
        {"@ v  #": "@ v.cpu()  #"},
    ),
    "attention_scores: all arguments are brought to the CPU": (
        "hard_coded_device",
        {
            "return attention_weights(": (
                "q, k, v = q.cpu(), k.cpu(), v.cpu()\n    return attention_weights("
            )
        },
    ),
    "causal_mask: the scores are brought to the CPU": (
        "hard_coded_device",
        {"return scores.masked_fill(~": "scores = scores.cpu()\n    return scores.masked_fill(~"},
    ),
    "reshape_dance: what moves stays on the CPU": (
        "hard_coded_device",
        {"return x.transpose": "return x.cpu().transpose"},
    ),
    "mha_by_loop: x is brought to the CPU in a loop": (
        "hard_coded_device",
        {"range(mha.n_head):": "range(mha.n_head):\n        x = x.cpu()"},
    ),
    "self_attention: what one head returns is on the CPU": (
        "hard_coded_device",
        {"return weights @ v": "return (weights @ v).cpu()"},
    ),
    "weight_split: what several heads return is on the CPU": (
        "hard_coded_device",
        {"(context)  # (B": "(context).cpu()  # (B"},
    ),
    "fused_qkv: what a fused layer returns is on the CPU": (
        "hard_coded_device",
        {"(self.proj(y))": "(self.proj(y)).cpu()"},
    ),
    "self_attention: a dropout of 0.1, whatever is asked": (
        "dropout_rate_fixed",
        {"nn.Dropout(dropout)": "nn.Dropout(0.1)"},
    ),
    "weight_split: a dropout without a rate": (
        "dropout_rate_fixed",
        {"nn.Dropout(dropout)": "nn.Dropout()"},
    ),
    "fused_qkv: a dropout of the weights of 0.1": (
        "dropout_rate_fixed",
        {"nn.Dropout(dropout)": "nn.Dropout(0.1)"},
    ),
    "fused_qkv: a dropout of the output of 0.2": (
        "dropout_rate_fixed",
        {"resid_dropout = nn.Dropout(dropout)": "resid_dropout = nn.Dropout(0.2)"},
    ),
    "self_attention: the rate that a function has by itself": (
        "dropout_rate_fixed",
        {
            "self.dropout(torch.softmax(scores, dim=-1))": (
                "nn.functional.dropout(scores.softmax(-1), training=self.training)"
            )
        },
    ),
    "self_attention: the output is dropped, too": (
        "dropout_extra",
        {"return weights @ v": "return self.dropout(weights @ v)"},
    ),
    "weight_split: the merged heads are dropped, too": (
        "dropout_extra",
        {"self.out_proj(context)": "self.out_proj(self.dropout(context))"},
    ),
    "fused_qkv: the output is dropped twice": (
        "dropout_extra",
        {
            "self.resid_dropout(self.proj(y))": (
                "self.resid_dropout(self.resid_dropout(self.proj(y)))"
            )
        },
    ),
    "sdpa_equivalence: the output is dropped twice, on both paths": (
        "dropout_extra",
        {
            "self.resid_dropout(self.proj(y))": (
                "self.resid_dropout(self.resid_dropout(self.proj(y)))"
            )
        },
    ),
    # with neither the rate nor the mode it has two faults
    "self_attention: a dropout with neither rate nor mode": (
        "dropout_always_on dropout_rate_fixed",
        {
            (
                "self.dropout(torch.softmax(scores, dim=-1))"
            ): "nn.functional.dropout(scores.softmax(-1))"
        },
    ),
    "weight_split: a dropout in every mode, of 0.1": (
        "dropout_always_on dropout_rate_fixed",
        {"self.dropout(scores.softmax(dim=-1))": "nn.functional.dropout(scores.softmax(-1), 0.1)"},
    ),
    "fused_qkv: a dropout of the weights with neither rate nor mode": (
        "dropout_always_on dropout_rate_fixed",
        {"self.attn_dropout(scores.softmax(dim=-1))": "nn.functional.dropout(scores.softmax(-1))"},
    ),
    "fused_qkv: a dropout of the output with neither rate nor mode": (
        "dropout_always_on dropout_rate_fixed",
        {"self.resid_dropout(self.proj(y))": "nn.functional.dropout(self.proj(y))"},
    ),
    # noise is no dropout
    "self_attention: noise on what a head returns, which is no dropout": (
        "",
        {"return weights @ v": "return weights @ v + torch.randn_like(v)"},
    ),
    "fused_qkv: noise on what the heads return, which is no dropout": (
        "",
        {"y = weights @ v": "y = weights @ v + torch.randn_like(v)"},
    ),
    "weight_split: an output that is projected twice": (
        "proj_twice",
        {"self.out_proj(context)": "self.out_proj(self.out_proj(context))"},
    ),
    "mha_by_loop: an output that is projected twice": (
        "proj_twice",
        {"mha.proj(torch.cat(heads, dim=-1))": "mha.proj(mha.proj(torch.cat(heads, dim=-1)))"},
    ),
    "fused_qkv: an output that is projected twice": (
        "proj_twice",
        {"self.proj(y)": "self.proj(self.proj(y))"},
    ),
    "sdpa_equivalence: an output that is projected twice": (
        "proj_twice",
        {"self.proj(y)": "self.proj(self.proj(y))"},
    ),
    "mha_by_loop: who writes into the weights has cut no gradient": (
        "input_mutated",
        {
            "    heads = []": "    w_q.data.div_(math.sqrt(hd))\n    heads = []",
            "/ math.sqrt(hd)": "* 1",
        },
    ),
    "sliding_window: a mask of four axes, for scores of two, three and four": (
        "hard_coded_shape",
        {"scores.masked_fill(~mask": "scores.masked_fill(~mask[None, None]"},
    ),
    "attention_scores: one leading axis at least": (
        "hard_coded_shape",
        {"q @ k.transpose(-2, -1) / math": "torch.einsum('b...qc,b...kc->b...qk', q, k) / math"},
    ),
    "sdpa_equivalence: a module that is compared in float64, and left so": (
        "path_difference",
        {"        module.eval()\n": "        module.double().eval()\n        x = x.double()\n"},
    ),
    "tiled_attention: a block measured from its own maximum": (
        "tile_max_not_carried",
        {"(piece - higher).exp()": "(piece - piece.amax(-1, keepdim=True)).exp()"},
    ),
    "causal_mask: a mask with an axis more": ("interface", AN_AXIS_MORE),
    "mha_by_loop: the values' gradient is lost on the way to x": (
        "gradient_cut",
        {"x @ w_v[own]": "x.detach() @ w_v[own]"},
    ),
    "mha_by_loop: the values' gradient is lost, and the scale is wrong": (
        "scale_no_sqrt gradient_cut",
        {"x @ w_v[own]": "x.detach() @ w_v[own]", "math.sqrt(hd)": "hd"},
    ),
    "mha_by_loop: a small number is subtracted in place of minus infinity": (
        "mask_weak_fill",
        {
            (
                "scores = scores.masked_fill(~visible, -math.inf)"
            ): "scores = scores - 5.0 * (~visible).to(x.dtype)"
        },
    ),
    "mha_by_loop: a small number is subtracted, and the rows are read per head": (
        "qkv_packed_per_head mask_weak_fill",
        {
            (
                "scores = scores.masked_fill(~visible, -math.inf)"
            ): "scores = scores - 10 * (~visible).to(x.dtype)",
            "mha.qkv.weight.split(C, dim=0)": (
                "mha.qkv.weight.view(mha.n_head, 3, hd, C).transpose(0, 1).reshape(3, C, C)"
            ),
        },
    ),
    "fused_qkv: a row that sees nobody is made a row of zeros": (
        "mask_excludes_self",
        {
            "~self.visible[:T, :T]": "~self.visible[:T, :T].tril(-1)",
            "dim=-1))": "dim=-1).nan_to_num())",
        },
    ),
    "self_attention: a softmax by hand over the past without the token itself, and the scale": (
        "scale_no_sqrt mask_excludes_self",
        {
            "torch.softmax(scores, dim=-1)": "mean / mean.sum(2, keepdim=True)",
            'scores = scores.masked_fill(~self.mask[:T, :T], float("-inf"))': (
                "mean = (scores - scores.amax(2, keepdim=True)).exp() * self.mask[:T, :T].tril(-1)"
            ),
            "math.sqrt(q.shape[-1])": "q.shape[-1]",
        },
    ),
    "weight_split: untransposed weights by einsum, whose exception is its own": (
        "weight_not_transposed",
        {
            "self.W_query(x), self.W_key(x), self.W_value(x)": (
                "(torch.einsum('nti,io->nto', x, w.weight) + (0 if w.bias is None else "
                "w.bias) for w in (self.W_query, self.W_key, self.W_value))"
            )
        },
    ),
    "fused_qkv: a whole mask that fits no shorter sequence, not even one of a single token": (
        "mask_not_sliced",
        {
            "scores.masked_fill(~self.visible[:T, :T], -math.inf)": (
                "torch.where(self.visible.expand_as(scores), scores, -math.inf)"
            )
        },
    ),
    "fused_qkv: a mask cut in one direction, by einsum, which stretches a single token": (
        "mask_not_sliced",
        {
            "~self.visible[:T, :T], -math.inf": "~self.visible[:T], torch.finfo(x.dtype).min",
            "y = weights @ v": "y = torch.einsum('bhij, bhjd -> bhid', weights, v)",
        },
    ),
    "sdpa_equivalence: a plain division where the sum comes near nothing": (
        "softmax_missing",
        {
            "-math.inf)\n": "0.0)\n",
            "y = self.attn_dropout(scores.softmax(dim=-1))": (
                "y = self.attn_dropout(scores / scores.sum(-1, keepdim=True))"
            ),
            "q @ k.transpose(-2, -1)": "torch.einsum('bhid,bhjd->bhij', q, k)",
        },
    ),
    "causal_mask: a mask of 16 tokens": (
        "mask_not_sliced",
        {"causal_mask(scores.shape[-1], ": "causal_mask(16, "},
    ),
    # What real code gets wrong.
    "self_attention: a scale from the batch": (
        "scale_wrong_axis",
        {"math.sqrt(q.shape[-1])": "q.shape[0] ** 0.5"},
    ),
    "attention_scores: a whole root": (
        "scale_rounded",
        {"math.sqrt(q.shape[-1])": "math.isqrt(q.shape[-1])"},
    ),
    "fused_qkv: scores divided with two slashes": (
        "scale_rounded",
        {"/ math.sqrt(self.head_dim)": "// math.sqrt(self.head_dim)"},
    ),
    "self_attention: a fill just below the smallest score": (
        "mask_weak_fill",
        {'float("-inf")': "scores.min() - 1"},
    ),
    "causal_mask: a fill three below the smallest score": (
        "mask_weak_fill",
        {'float("-inf")': "scores.min().item() - 3"},
    ),
    "weight_split: a softmax over batch and heads": (
        "softmax_wrong_axis",
        {"scores.softmax(dim=-1)": "scores.flatten(0, 1).softmax(0).view_as(scores)"},
    ),
    "self_attention: the batch's softmax of an added mask": (
        "softmax_wrong_axis",
        {
            "softmax(scores, dim=-1)": "softmax(scores, dim=0)",
            'scores = scores.masked_fill(~self.mask[:T, :T], float("-inf"))': (
                "scores = scores + torch.zeros(T, T, "
                "device=x.device).masked_fill(~self.mask[:T, :T], -math.inf)"
            ),
        },
    ),
    "fused_qkv: a mask as large as the batch": (
        "size_wrong_axis",
        {"~self.visible[:T, :T]": "~self.visible[:B, :B]"},
    ),
    "reshape_dance: sizes of a tensor that is transposed already": (
        "size_wrong_axis",
        {
            "B, nh, T, hd = y.shape\n    return y.transpose(1, 2)": (
                "y = y.transpose(1, 2)\n    B, nh, T, hd = y.shape\n    return y"
            )
        },
    ),
    "weight_split: the wrong width is asked about": (
        "refuses_allowed",
        {"if d_out % num_heads != 0": "if d_in % num_heads != 0"},
    ),
    "fused_qkv: three times the width is asked about": (
        "divisibility_unchecked",
        {"if n_embd % n_head != 0": "if 3 * n_embd % n_head != 0"},
    ),
    "weight_split: a bias for each head": (
        "proj_bias",
        {
            "return self.out_proj(context)": (
                "return sum(nn.functional.linear(c, w, self.out_proj.bias) for c, w in "
                "zip(context.chunk(self.num_heads, 2), "
                "self.out_proj.weight.chunk(self.num_heads, 1)))"
            )
        },
    ),
    "fused_qkv: the mean of heads with all values": (
        "heads_share_weights",
        {
            "y = weights @ v": "y = (weights @ v.transpose(1, 2).reshape(B, 1, T, C)).mean(1)",
            "y = y.transpose(1, 2).reshape(B, T, C)": "pass",
        },
    ),
    "causal_mask: a mask as large as the first axis": (
        "size_wrong_axis",
        {"causal_mask(scores.shape[-1], ": "causal_mask(scores.shape[0], "},
    ),
    "mha_by_loop: a layer in place of its weight": (
        "layer_not_called",
        {"mha.qkv.weight.split(C, dim=0)": "mha.qkv.split(C, dim=0)"},
    ),
    "self_attention: an answer that is rounded, and has no gradient": (
        "output_rounded",
        {"return weights @ v": "return (weights @ v).round(decimals=4)"},
    ),
    "causal_mask: a mask of one and minus infinity": (
        "mask_added",
        {
            'scores.masked_fill(~mask, float("-inf"))': (
                'scores + mask.to(scores).masked_fill(~mask, float("-inf"))'
            )
        },
    ),
    "fused_qkv: rows read per head, and a merge without its transpose": (
        "merge_no_transpose qkv_packed_per_head",
        PACKED,
    ),
    "weight_split: sequences mixed up, which is no dropout, and a bias": (
        "merge_wrong_axes proj_bias",
        {
            "(weights @ v).transpose(1, 2)": "(weights @ v).permute(1, 2, 0, 3)",
            "bias=qkv_bias": "bias=True",
        },
    ),
    "fused_qkv: sequences mixed up, and no dropout": (
        "heads_mix_batch dropout_missing",
        {
            "y.transpose(1, 2).reshape(B, T, C)": (
                "y.reshape(self.n_head, B, T, -1).permute(1, 2, 0, 3).reshape(B, T, C)"
            ),
            "self.attn_dropout(": "(",
            "self.resid_dropout(": "(",
        },
    ),
    "attention_scores: a sum that is detached in a softmax by hand": (
        "gradient_cut",
        {
            "return torch.softmax(scores, dim=-1)": (
                "return (scores - scores.logsumexp(-1, keepdim=True).detach()).exp()"
            )
        },
    ),
    "sliding_window: the data of a sum in a window's softmax": (
        "gradient_cut",
        {
            'torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)': (
                "(mask * scores.exp()) / (mask * scores.exp()).sum(-1, keepdim=True).data"
            )
        },
    ),
    "causal_mask: a sum that is detached behind the mask": (
        "gradient_cut",
        {
            "torch.softmax(mask_scores(scores, mask), dim=-1)": (
                "(mask_scores(scores, mask) - mask_scores(scores, mask).logsumexp(-1, "
                "keepdim=True).detach()).exp()"
            )
        },
    ),
    "sdpa_equivalence: a mask that is made for the fused function": (
        "materialised",
        {
            ", is_causal=True": (
                ", attn_mask=torch.ones(T, T, dtype=torch.bool, device=x.device).tril()"
            )
        },
    ),
    "mha_by_loop: rows of a head as they are stored": (
        "weight_not_transposed",
        {"x @ w_q[own].T, x @ w_k[own].T": "x @ w_q[own], x @ w_k[own]"},
    ),
    "fused_qkv: q, k and v from the batch's axis": (
        "qkv_mix_batch",
        {
            "q, k, v = self.qkv(x).split(C, dim=-1)": (
                "z = self.qkv(x).view(B, T, 3, self.n_head, self.head_dim).permute(0, 2, 3, "
                "1, 4)\n        q, k, v = (t.transpose(1, 2) for t in z.reshape(3, B, "
                "self.n_head, T, -1))"
            )
        },
    ),
    "kv_cache: a cache kept in a default that knows no None": (
        "cache_shared",
        {
            "cache=None)": "cache={})",
            "past = 0 if cache is None else cache[0].shape[2]": (
                "past = cache['k'].shape[2] if 'k' in cache else 0"
            ),
            "if cache is not None": "if past",
            "cat([cache[0]": "cat([cache['k']",
            "cat([cache[1]": "cat([cache['v']",
            "return self.proj(y), (k, v)": (
                "cache['k'], cache['v'] = k, v\n        return self.proj(y), cache"
            ),
        },
    ),
    "mha_by_loop: heads cut anew along the batch": (
        "heads_mix_batch",
        {
            "torch.cat(heads, dim=-1)": (
                "torch.cat(list(torch.stack(heads, dim=1).reshape(mha.n_head, *x.shape[:2], "
                "mha.head_dim)), dim=-1)"
            )
        },
    ),
    "fused_qkv: the fused weight turned before it is cut": (
        "qkv_sliced_by_columns",
        {
            "q, k, v = self.qkv(x).split(C, dim=-1)": (
                "q, k, v = (x @ part.T for part in self.qkv.weight.T.reshape(3, C, C))"
            )
        },
    ),
    "cross_attention: keep cut or padded to the queries": (
        "keep_on_queries",
        {
            "keep[:, None, None, :]": (
                "torch.nn.functional.pad(keep[:, : x.shape[1]], (0, max(0, x.shape[1] - "
                "keep.shape[1])), value=True)[:, None, :, None]"
            )
        },
    ),
    "fused_qkv: the limit asked the wrong way round": (
        "refuses_allowed",
        {"if self.block_size < T:": "if self.block_size > T:"},
    ),
    "self_attention: the limit itself refused": (
        "refuses_allowed",
        {"if self.context_length < T:": "if self.context_length <= T:"},
    ),
    "weight_split: every length refused": (
        "refuses_allowed",
        {"if self.context_length < T:": "if T:"},
    ),
    "fused_qkv: divisible heads refused": (
        "refuses_allowed divisibility_unchecked",
        {"if n_embd % n_head != 0:": "if n_embd % n_head == 0:"},
    ),
    "sliding_window: as many queries as keys refused": (
        "refuses_allowed",
        {"if T_q > T_k:": "if T_q >= T_k:"},
    ),
    "kv_cache: the limit refused, and no scale": (
        "refuses_allowed scale_missing",
        {
            "if past + T > self.block_size:": "if past + T >= self.block_size:",
            " / math.sqrt(self.head_dim)": "",
        },
    ),
    "self_attention: an assertion of one's own about the queries": (
        "",
        {
            "scores = q @ k.transpose": (
                "assert q.shape == (x.shape[0], T, 1)\n        scores = q @ k.transpose"
            )
        },
    ),
    "kv_cache: any constant beside a cache": (
        "scale_constant",
        {"/ math.sqrt(self.head_dim)": "* 0.37"},
    ),
    "kv_cache: any fill beside a cache": (
        "mask_weak_fill",
        {"key > query, -math.inf": "key > query, -4.4"},
    ),
    "tiled_attention: any constant in tiles": ("scale_constant", {"/ math.sqrt(hd)": "* 0.37"}),
    "tiled_attention: any fill in tiles": (
        "mask_weak_fill",
        {"key > query, -math.inf": "key > query, -4.4"},
    ),
    "attention_scores: the arguments in another order": (
        "interface",
        {
            ("attend(q: torch.Tensor, k: torch.Tensor, v"): (
                "attend(q: torch.Tensor, v: torch.Tensor, k"
            )
        },
    ),
    "cross_attention: keep along the rows of the scores": (
        "keep_on_queries",
        {"keep[:, None, None, :]": "keep[:, None, :, None]"},
    ),
    "grouped_query_attention: a count that is right where two sizes happen to fit": (
        "cache_bytes",
        {
            "2 * n_layer * n_kv_head * head_dim * T  #": (
                "2 * n_layer * n_head * (n_head // head_dim) * T  #"
            )
        },
    ),
    "kv_cache: keys and values kept on the module": ("cache_shared", ON_THE_MODULE),
    "weight_split: weights that are the same whatever the scores are": (
        "scores_ignored",
        {
            "scores.softmax(": (
                "(scores * 0).masked_fill(self.future[:T, :T], float('-inf')).softmax("
            )
        },
    ),
    "weight_split: the count of heads taken for their width": ("heads_and_width_swapped", SWAPPED),
    "kv_cache: past keys as past values": (
        "values_wrong_source",
        {"v = torch.cat([cache[1], v], dim=2)": "v = torch.cat([cache[0], v], dim=2)"},
    ),
    "reshape_dance: a refusal the wrong way round": (
        "refuses_allowed",
        {"if C % n_head != 0": "if C % n_head == 0"},
    ),
    "self_attention: a device that this machine has not": (
        "hard_coded_device",
        {"T = x.shape[1]\n": "T = x.shape[1]\n        x = x.to('cuda')\n"},
    ),
    "attention_scores: weights in float32 alone": (
        "hard_coded_dtype",
        {"return torch.softmax(scores, dim=-1)": "return torch.softmax(scores.float(), dim=-1)"},
    ),
    "attention_scores: `.T` of three axes": (
        "axes_turned",
        {"q @ k.transpose(-2, -1)": "q @ k.T", "x @ x.transpose(-2, -1)": "x @ x.T"},
    ),
    "grouped_query_attention: no transpose": (
        "keys_not_transposed",
        {"q @ k.transpose(-2, -1)": "q @ k"},
    ),
    "self_attention: weights that are dropped in place": (
        "dropout_in_place",
        {"nn.Dropout(dropout)": "nn.Dropout(dropout, inplace=True)"},
    ),
    "mha_by_loop: a return inside the loop": (
        "heads_one_width",
        {"    return mha.proj": "        return mha.proj"},
    ),
    "fused_qkv: three mistakes in one layer": (
        "scale_sqrt_c mask_missing dropout_before_softmax",
        {
            "scores = scores.masked_fill(": "scores.masked_fill(",
            "math.sqrt(self.head_dim)": "math.sqrt(C)",
            "self.attn_dropout(scores.softmax(dim=-1))": "scores.softmax(dim=-1)",
        },
    ),
    # What a title says is what was done: the root of a length is not the number of tokens, and two
    # tokens are not one.
    "self_attention: the root of the longest length": (
        "scale_sqrt_tokens",
        {"math.sqrt(q.shape[-1])": "math.sqrt(self.context_length)"},
    ),
    "fused_qkv: the number of heads without a root": (
        "scale_heads",
        {"/ math.sqrt(self.head_dim)": "/ self.n_head"},
    ),
    "fused_qkv: the full width without a root": ("scale_c", {"/ math.sqrt(self.head_dim)": "/ C"}),
    "fused_qkv: multiplied by the full width": (
        "scale_multiplied",
        {"/ math.sqrt(self.head_dim)": "* C"},
    ),
    "grouped_query_attention: multiplied by the full width": (
        "scale_multiplied",
        {"/ math.sqrt(self.head_dim)": "* C"},
    ),
    "kv_cache: two future tokens": ("mask_peeks_ahead", {"key > query,": "key > query + 2,"}),
    "self_attention: high scores for what is hidden": ("mask_high_fill", {'float("-inf")': "1e9"}),
    "sliding_window: the far past alone": (
        "window_far_past",
        {"(key <= query) & (key > query - window)": "key <= query - window"},
    ),
    "cross_attention: hidden is what is padding in every sequence": (
        "keep_across_batch",
        {"~keep[:, None, None, :]": "~keep.any(0)[None, None, None, :]"},
    ),
    "sdpa_equivalence: causal for the longest sequence alone": (
        "mask_missing",
        {"is_causal=True": "is_causal=T == self.block_size"},
    ),
    "sliding_window: half a window": (
        "window_halved",
        {"key > query - window)": "key >= query - window // 2)"},
    ),
    "attention_scores: a division where none is due": (
        "scale_not_due",
        {
            (
                "torch.softmax(x @ x.transpose(-2, -1), dim=-1)"
            ): "attention_weights(attention_scores(x, x))"
        },
    ),
    # What is kept from one call to the next stays behind when the module moves between them.
    "self_attention: a dict of masks, made when each length first comes": (
        "mask_not_moved",
        KEEPS_MASKS,
    ),
    "kv_cache: a dict of masks for each past": (
        "mask_not_moved",
        {
            "self.proj = nn.Linear(": "self.masks = {}\n        self.proj = nn.Linear(",
            "key > query, -math.inf": "self.masks.setdefault((past, T), key > query), -math.inf",
        },
    ),
    # Where chance decides the answers of one function, the other that uses it is not to blame.
    "sdpa_equivalence: the output is dropped in eval mode, too": (
        "dropout_always_on",
        {
            "self.resid_dropout(self.proj(y))": (
                "nn.functional.dropout(self.proj(y), self.attn_dropout.p)"
            )
        },
    ),
    "kv_cache: the output is dropped": (
        "dropout_extra",
        {
            "return self.proj(y), (k, v)": (
                "return nn.functional.dropout(self.proj(y), 0.1, self.training), (k, v)"
            )
        },
    ),
    "mha_by_loop: no gradient reaches any weight": (
        "gradient_cut",
        {
            "mha.qkv.weight.split(": "mha.qkv.weight.detach().split(",
            "mha.proj(": "nn.functional.linear(weight=mha.proj.weight.detach(), input=",
        },
    ),
    # An exception that many mistakes end in names none.
    "causal_mask: a function that is not called": (
        "",
        {"mask_scores(scores, mask)": "mask_scores(scores, causal_mask)"},
    ),
    "weight_split: a number read off the wrong axis, which a guard refuses here and a view there": (
        "",
        {"B, T, _ = x.shape": "B, _, T = x.shape"},
    ),
    "weight_split: a norm without parameters of its own": (
        "",
        {
            "return self.out_proj(context)": (
                "return nn.functional.layer_norm(self.out_proj(context), "
                "(self.out_proj.out_features,))"
            )
        },
    ),
}
AT_HOME_UNNAMED = {  # a hidden check alone shows it
    "self_attention: all layers made anew in forward",
    "self_attention: the queries' layer made anew in forward",
    "sdpa_equivalence: the fused layer of two paths made anew in forward",
    "mha_by_loop: the values' gradient is lost, and the scale is wrong",
    "sdpa_equivalence: a mask that is made for the fused function",
}


@pytest.mark.parametrize("row", TOLD)
def test_it_has_its_names_on_both_sides(sides: Sides, row: str) -> None:
    expected_ids, changes = TOLD[row]
    graded, home = sides.both_results(row.partition(":")[0], changes)
    assert graded.score < graded.max_score
    assert [misconception.id for misconception in graded.diagnosis] == expected_ids.split()
    assert [misconception.id for misconception in home.diagnosis] == (
        [] if row in AT_HOME_UNNAMED else expected_ids.split()
    )


@pytest.mark.parametrize("exercise", ["self_attention", "weight_split"])
def test_two_weights_that_are_one_tensor_have_no_cut_gradient(sides: Sides, exercise: str) -> None:
    dropout_line = "self.dropout = nn.Dropout(dropout)"
    result = sides.grade_attempt(
        exercise, {dropout_line: f"{dropout_line}\n        self.W_key.weight = self.W_query.weight"}
    )
    assert result.score < result.max_score
    assert [misconception.id for misconception in (*result.diagnosis, *result.also)] == [
        "params_not_registered"
    ]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"@ v  #": "@ v.cpu().to(v.device)  #"}, id="there and back"),
        pytest.param(
            {"return attention_weights(": "print(q.tolist())\n    return attention_weights("},
            id="printed",
        ),
    ],
)
def test_numbers_may_be_looked_at_on_the_cpu(sides: Sides, change: Changes) -> None:
    result = sides.grade_attempt("attention_scores", change)
    assert (result.score, result.diagnosis) == (result.max_score, ())


def test_a_mask_that_is_kept_may_follow_its_input(sides: Sides) -> None:
    graded, home = sides.both_results(
        "self_attention", {**KEEPS_MASKS, "~self.mask[:T, :T],": "~self.masks[T].to(x.device),"}
    )
    assert graded.score == graded.max_score == home.score


SIZES = [
    pytest.param(
        "attention_scores",
        {"return q @": "q, k = q.view(2, 10, -1), k.view(2, 10, -1)\n    return q @"},
        id="B and T",
    ),
    pytest.param(
        "causal_mask",
        {"causal_mask(scores.shape[-1], ": "causal_mask(20, "},
        id="a mask of 20 tokens",
    ),
    pytest.param(
        "self_attention",
        {"return weights @ v": "return (weights @ v).view(6, 9, -1)"},
        id="an unusual batch",
    ),
    pytest.param(
        "self_attention", {"~self.mask[:T, :T]": "~self.mask[:8, :8]"}, id="a mask cut to 8 tokens"
    ),
    pytest.param(
        "reshape_dance",
        {
            "return y.transpose": (
                "y = torch.stack([y[:, h] for h in range(11)], 1)\n    return y.transpose"
            )
        },
        id="11 heads",
    ),
    pytest.param(
        "weight_split",
        {"d_out // num_heads": "d_out // 6", "self.num_heads = num_heads": "self.num_heads = 6"},
        id="6 heads",
    ),
    pytest.param(
        "mha_by_loop",
        {"T, C, hd = x.shape[1],": "x = x.view(2, 16, -1)\n    T, C, hd = x.shape[1],"},
        id="16 tokens",
    ),
    pytest.param("fused_qkv", {"self.head_dim)": "24)"}, id="heads of 24 channels"),
    pytest.param(
        "sdpa_equivalence",
        {"view(B, T, self.n_head, self.head_dim)": "view(32, 128, self.n_head, self.head_dim)"},
        id="32 sequences of 128 tokens",
    ),
    pytest.param(
        "sdpa_equivalence",
        {"view(B, T, self.n_head, self.head_dim)": "view(B, T, self.n_head, 64)"},
        id="heads of 64 channels",
    ),
]


@pytest.mark.parametrize(("exercise", "changes"), SIZES)
def test_sizes_that_stand_in_the_text(sides: Sides, exercise: str, changes: Changes) -> None:
    result = sides.grade_attempt(exercise, changes)
    assert result.score < result.max_score
    (name,) = names(result)
    assert "hard_coded_shape" in name.split("|")


HALF_WRITTEN = {
    "if n_embd % n_head != 0:": "if False:",
    "B, T, C = x.shape\n": "raise NotImplementedError\n",
}


def test_of_a_half_written_class_what_is_wrong_is_told_and_not_that_a_method_is_not_written(
    sides: Sides,
) -> None:
    result = sides.grade_attempt("fused_qkv", HALF_WRITTEN)
    assert result.diagnosis[0].id == "divisibility_unchecked"
    assert result.functions[0].check.startswith("refuses an n_embd that n_head does not divide")


BODY = """weights = torch.softmax(x @ x.transpose(-2, -1), dim=-1)  # (..., T, T)
    return weights @ x"""
SKIPPED = {BODY: "raise NotImplementedError"}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        pytest.param(
            {
                "return torch.softmax(scores, dim=-1)": (
                    "return (scores - scores.logsumexp(-1, keepdim=True).detach()).exp()"
                )
            },
            "gradient_cut",
            id="a sum that is detached",
        ),
        pytest.param(
            {
                "return torch.softmax(scores, dim=-1)": (
                    "return torch.softmax(scores.float(), dim=-1)"
                )
            },
            "hard_coded_dtype",
            id="float32",
        ),
    ],
)
def test_a_check_that_stops_at_what_is_not_written_yet_proves_what_is_wrong_beside_it(
    sides, changes, named
):
    result = sides.grade_attempt("attention_scores", {**SKIPPED, **changes})
    assert [misconception.id for misconception in result.diagnosis] == [named, "stub_untouched"]


UNLISTED = {"torch.softmax(scores, dim=-1)": "torch.softmax(scores.clamp(max=0.3), dim=-1)"}
PLAIN_DROPOUT = "self.dropout(torch.softmax(scores, dim=-1))"


@pytest.mark.parametrize(
    ("changes", "also"),
    [
        pytest.param(
            {PLAIN_DROPOUT: "torch.softmax(scores.clamp(max=0.3), dim=-1)"},
            "dropout_missing",
            id="a dropout never used",
        ),
        pytest.param(
            {**UNLISTED, "weights @ v ": "weights @ v.detach() "},
            "gradient_cut",
            id="a cut gradient",
        ),
        pytest.param(
            {
                **UNLISTED,
                "        mask = torch.ones": (
                    "        self.more = nn.Linear(2, 2)\n        mask = torch.ones"
                ),
            },
            "params_extra",
            id="a layer too many",
        ),
    ],
)
def test_a_fault_beside_one_that_nobody_listed_is_told_apart(
    sides: Sides, changes: Changes, also: str
) -> None:
    result = sides.grade_attempt("self_attention", changes)
    assert ([d.id for d in result.diagnosis], [d.id for d in result.also]) == ([], [also])


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        pytest.param(
            {PLAIN_DROPOUT: "nn.functional.dropout(torch.softmax(scores, dim=-1))"},
            ["dropout_always_on", "dropout_rate_fixed"],
            id="chance decides the values",
        ),
        pytest.param(
            {"        T = x.shape[1]": "        x *= 3\n        T = x.shape[1]"},
            ["input_mutated"],
            id="the argument is scaled",
        ),
        pytest.param(
            {PLAIN_DROPOUT: "torch.softmax(scores, dim=-1)"},
            ["dropout_missing"],
            id="nothing else is wrong",
        ),
    ],
)
def test_what_explains_the_values_is_named(
    sides: Sides, changes: Changes, names: list[str]
) -> None:
    result = sides.grade_attempt("self_attention", changes)
    assert ([d.id for d in result.diagnosis], result.also) == (names, ()), [
        c.id for c in result.checks if c.score == 0
    ]


def test_a_change_in_place_of_a_tensor_of_ones_own_is_no_changed_argument(sides: Sides) -> None:
    changes = {
        "    return torch.softmax(scores, dim=-1)": (
            "    return torch.softmax(scores, dim=-1).mul_(1.0)"
        )
    }
    result = sides.grade_attempt("attention_scores", changes)
    assert [c.outcome for c in result.checks if c.outcome != "passed"] == ["error"]
    assert (result.diagnosis, result.also) == ((), ())


def test_at_home_it_is_told_apart_where_a_recorded_call_is_asked_by_no_visible_check(
    sides: Sides,
) -> None:
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


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(
            {"return weights @ v": "return (weights @ v).cpu()"},
            id="what is returned is on the CPU",
        ),
        pytest.param(
            {"~self.mask[:T, :T]": "~self.mask[:T, :T].cpu()"}, id="a mask is taken there"
        ),
    ],
)
def test_at_home_a_fixed_device_is_proved_by_what_meets(sides: Sides, changes: Changes) -> None:
    assert names(sides.home("self_attention", changes)) == ["hard_coded_device"]
