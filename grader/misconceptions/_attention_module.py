"""A module that attends, right except for its knobs.

Its subclasses have the layers. It serves three exercises: its mutants are not edits, because the
same fault would be another text in each of their references, and two faults of one line could not
be combined.
"""

from torch import nn

from ._attention import MIXES
from ._kept import first_value
from ._masking import VISIBLE, hidden, lower, of_mask, weighed
from ._scaling import ROUNDED_SCORES, factor

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


class Attention(nn.Module):
    """A module that is right except for its knobs."""

    knobs = None

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

    def joined(self, q, key, v, s, k):
        """Return the answers of the heads, (B, nh, T, hd)."""
        over_heads = k.attend_over == "heads"
        q, key, v = (t.transpose(1, 2) for t in (q, key, v)) if over_heads else (q, key, v)
        y = self.weigh(
            *(self.cut(role, t, k) for role, t in zip("qkv", (q, key, v), strict=True)), s, k
        )
        return y.transpose(1, 2) if over_heads else y

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
