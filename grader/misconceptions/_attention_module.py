"""A module that attends, right except for its knobs.

It has a fused projection, unless a subclass has other layers. It serves six exercises: its mutants
are not edits, because the same fault would be another text in each of their references, and two
faults of one line could not be combined.
"""

import torch.nn.functional as F
from torch import nn

from ._attention import CUTS, MERGES, MIXES, PROJS, SOURCES, SPLITS
from ._kept import first_value
from ._masking import VISIBLE, hidden, lower, of_mask, weighed
from ._scaling import ROUNDED_SCORES, factor

# The right value of each knob.
KNOBS = {
    "scale": "sqrt_hd",
    "scaled": "scores",
    "mask": "causal",
    "softmax": "keys",
    "softmax_of": "queries_by_keys",
    "scores": "no",
    "cut": "qkv",
    "split": "heads",
    "split_of": "qkv",
    "merge": "heads",
    "attend_over": "tokens",
    "source": "own",
    "mix": "matmul",
    "proj": "linear",
    "context": "checked",
    "cut_gradient": (),
    "fixed": None,
    "holder": "buffer",
    "holder_in_use": "buffer",
}


class Sizes:
    """The sizes B, T, C, nh, hd and block of one call; `fixed` are those that are hard-coded."""

    def __init__(self, x, nh, block, fixed):
        self.B, self.T, self.C = x.shape
        self.nh, self.block = nh, block
        for name, value in fixed.items():
            setattr(self, name, block if value == "block" else value)
        if "hd" not in fixed:
            self.hd = self.C // self.nh
        if "hd" in fixed and "nh" not in fixed:
            self.nh = self.C // self.hd


# The mask in use, from (module, x: scores or queries, sizes). The module may hold the mask for the
# longest context in `seen`.
HOLDERS = {
    "whole": lambda module, x, s: module.seen,
    "whole_stretched": lambda module, x, s: module.seen.expand(*x.shape[:-1], x.shape[-2]),
    "rows_only": lambda module, x, s: module.seen[: x.shape[-2]],
    "cut_to_tokens": lambda module, x, s: module.seen[: s.T, : s.T],
    "cut_to_batch": lambda module, x, s: module.seen[: s.B, : s.B],
    "cut_to_scores": lambda module, x, s: module.seen[: x.shape[-2], : x.shape[-1]],
    "made_for_batch": lambda module, x, s: lower(s.B, x.device),
    "made_for_batch_stretched": lambda module, x, s: lower(s.B, x.device).expand(x.shape),
    "made_for_heads": lambda module, x, s: lower(s.nh, x.device),
    "made_on_default_device": lambda module, x, s: lower(x.shape[-2]),
    "made_in_forward": lambda module, x, s: lower(x.shape[-2], x.device),
    "first_call": lambda module, x, s: first_value(
        module, "seen_first", lower(x.shape[-2], x.device)
    ),
    "first_call_cut": lambda module, x, s: HOLDERS["first_call"](module, x, s)[
        : x.shape[-2], : x.shape[-2]
    ],
    "kept_by_length": lambda module, x, s: kept_by_length(
        first_value(module, "masks", {}), x.shape[-2], x.device
    ),
}


def kept_by_length(masks, size, device):
    """Return the mask for this size, made when the first sequence of this length came."""
    if size not in masks:
        masks[size] = lower(size, device)
    return masks[size]


def in_heads(tensor, split, s):
    """Return a part (B, T, C) split into heads in this way.

    A part that already has its heads is split again only if the way is a wrong one.
    """
    has_heads = tensor.dim() == 4
    if has_heads and split == "heads":
        return tensor
    return SPLITS[split](MERGES["heads"](tensor, s) if has_heads else tensor, s)


class Attention(nn.Module):
    """A module that is right except for its knobs.

    A subclass may choose the knobs of each call (`knobs_now`), and how q, k and v are used
    (`gather`).
    """

    knobs = None

    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"n_embd = {n_embd} cannot be cut into n_head = {n_head} equal heads")
        self.n_head, self.block_size = n_head, block_size
        self.make_layers(n_embd)
        self.drop, self.drop_output = nn.Dropout(dropout), nn.Dropout(dropout)
        self.hold_mask(self.knobs.holder, block_size)

    def make_layers(self, C):
        self.qkv, self.proj = nn.Linear(C, 3 * C, bias=False), nn.Linear(C, C, bias=False)

    def hold_mask(self, holder, size):
        mask = lower(size)
        if holder == "attribute":
            self.seen = mask
        elif holder in ("parameter", "float_parameter"):
            self.seen = nn.Parameter(mask.float(), requires_grad=holder == "float_parameter")
        else:
            self.register_buffer("seen", mask, persistent=False)

    def mask_for(self, x, holder, s):
        """Return the mask for x.

        Args:
            x: scores, or queries.
            holder: a name of HOLDERS, or the number of tokens to which the mask is cut.
            s: the sizes.
        """
        if holder in HOLDERS:
            return HOLDERS[holder](self, x, s)
        size = holder if isinstance(holder, int) else x.shape[-2]
        return self.seen[:size, :size].bool()

    def cut(self, step, t, k):
        """Return the tensor, detached if the graph is cut at this step."""
        return t.detach() if step in k.cut_gradient else t

    def knobs_now(self):
        return self.knobs

    def forward(self, x):
        k = self.knobs_now()
        if x.shape[1] > self.block_size:
            if k.context == "checked":
                raise ValueError(
                    f"T = {x.shape[1]} tokens do not fit block_size = {self.block_size}"
                )
            if k.context == "cut":
                x = x[:, : self.block_size]
        s = Sizes(x, self.n_head, self.block_size, k.fixed or {})
        y = self.cut("y", self.attend(self.cut("x", x, k), s, k), k)
        out = PROJS[k.proj](y, self.cut("proj", self.proj.weight, k))
        out = out if self.proj.bias is None else out + self.proj.bias
        return self.cut("out", self.drop_output(out), k)

    def attend(self, x, s, k):
        W = self.cut("W", self.qkv.weight, k)
        tensors = CUTS[k.cut](F.linear(x, W, self.qkv.bias), x, W, s)
        splits = [k.split if name in k.split_of else "heads" for name in "qkv"]
        q, key, v = (in_heads(t, split, s) for t, split in zip(tensors, splits, strict=True))
        return MERGES[k.merge](
            self.joined(*SOURCES[k.source](q, key, v, SPLITS["heads"](x, s)), s, k), s
        )

    def joined(self, q, key, v, s, k):
        """Return the answers of the heads, (B, nh, T, hd)."""
        over_heads = k.attend_over == "heads"
        q, key, v = (t.transpose(1, 2) for t in (q, key, v)) if over_heads else (q, key, v)
        y = self.gather(
            *(self.cut(role, t, k) for role, t in zip("qkv", (q, key, v), strict=True)), s, k
        )
        return y.transpose(1, 2) if over_heads else y

    def gather(self, q, key, v, s, k):
        return self.weigh(q, key, v, s, k)

    def weigh(self, q, key, v, s, k):
        """Return each head's mix of the values."""
        by, (pattern, how) = factor(k.scale, s), self.mask_of(k)

        def at(step, t):
            """Return t, scaled, dropped or detached if the knobs say so for this step."""
            t = ROUNDED_SCORES[k.scores](t * by) if step in k.scaled.split("+") else t
            return self.cut(step, self.dropped(step, t, k), k)

        scores = q @ key.transpose(-2, -1)
        scores = at("scores", scores.mT if k.softmax_of == "keys_by_queries" else scores)
        mask = self.mask_for(scores, k.holder_in_use, s)
        mask = None if mask is None else VISIBLE[pattern](mask)
        scores = at("hidden", hidden(scores, mask, how))
        return MIXES[k.mix](at("weights", weighed(scores, mask, how, k.softmax)), v)

    def mask_of(self, k):
        """Return which keys may be seen, and how the rest is hidden."""
        return of_mask(k.mask)

    def dropped(self, step, t, k):
        return self.drop(t) if step == "weights" else t


# the steps at which gradients stop
CUTS_OF_GRADIENT = [
    (step,) for step in ("x", "W", "q", "k", "v", "scores", "weights", "y", "proj", "out")
]
CUTS_OF_GRADIENT += [("q", "k"), ("k", "v"), ("W", "proj")]
