"""Wrong attempts with W_query, W_key and W_value: edits of one head and of several.

They have names in braces, as in `_steps`, and a few more: {PROJECTED} is the beginning of the line
after the projections, {BUFFER} the line that keeps the mask, {mask} its name, and {visible} the
tensor of the keys that may be seen. {X_AS_VALUES} is x in heads.
"""

from manyheads.checks import Mutant

from . import _module_edits as edits
from . import _steps as step
from ._layer_edits import (
    ANEW,
    AS_PLAIN_ATTRIBUTE,
    AS_STORED,
    AS_TENSOR,
    DETACHED,
    IN_A_LIST,
    IN_FORWARD,
    layer_edit,
    renamed_layers,
)
from ._mutants import (
    BIAS_BY_DEFAULT,
    KEYS_NOT_TRANSPOSED,
    insert_before,
    mutants,
    written_in,
)
from ._steps import (
    HIDE,
    added_mask_edits,
    at_first,
    each_softmax,
    each_with,
    fills,
    scales,
    softmaxes,
)

# Texts of both references.
OPTIONS = "dropout: float = 0.0, qkv_bias: bool = False"
INIT, FIT = "super().__init__()", "if self.context_length < T:"
MADE = "nn.Linear(d_in, d_out, bias=qkv_bias)"
# for each layer the text that makes it, and its argument
LAYERS = dict.fromkeys(("W_query", "W_key", "W_value"), (MADE, "x"))
CHOICES = ("qkv", "q", "k", "v", "qk", "qv", "kv")


def edits_of_layers(*texts):
    """Return edits of all three layers, of each alone, and of each two."""
    return [layer_edit(LAYERS, letters, *texts) for letters in CHOICES]


def new_mask(size):
    """Return the text of a mask that is made in forward."""
    return f"torch.ones({size}, {size}, dtype=torch.bool, device=x.device).triu(1)"


def renaming_mutants(*new_names, layers=LAYERS):
    """Return mutants whose layers have these names."""
    return mutants("params_extra", *(renamed_layers(layers, names) for names in new_names))


def not_registered(layers=LAYERS):
    """Return mutants that do not keep all layers as modules, or make them in each call."""
    texts_of_ways = (IN_A_LIST, AS_TENSOR, AS_PLAIN_ATTRIBUTE, IN_FORWARD, ANEW)
    return mutants(
        "params_not_registered", *(layer_edit(layers, "qkvo", *texts) for texts in texts_of_ways)
    )


def attention_mutants(several=False):
    """Return the faults between the projections and the mix, most likely first.

    Args:
        several: whether there are several heads.
    """

    def if_several(*values):
        return values if several else ()

    axes = step.AXES if several else step.AXES[1:4]
    without_self = {"{HIDDEN}": "~{VISIBLE}.tril(-1)"}
    low = added_mask_edits(-1e9)[0]
    late = {HIDE: "", "weights @": "weights.masked_fill({HIDDEN}, 0.0) @"}
    late_infinity = "{SOFTMAX}.masked_fill({HIDDEN}, -torch.inf)"
    precedence = step.PRECEDENCE if several else step.PRECEDENCE_OF_HD
    numbers = (8, 4, 2, 64, 3, 768, "2 ** 0.5", "768 ** 0.5")
    weak = (-10.0, -1.0, -5.0, -11.0, -12.0, -13.0, -14.0, -20.0, -40.0, -50.0)
    added_weak = added_mask_edits(-10.0, -5.0)  # −1 added is a mask of ones: mask_added
    rounded_late = (
        step.LATE_SCALE
        | insert_before("weights = ", f"scores = scores {{SCALE}}\n        {rounding}")
        for rounding in step.ROUNDINGS
    )
    return (
        *scales("scale_missing", ""),
        *scales("scale_sqrt_c", *if_several("/ {C} ** 0.5"), "/ x.shape[-1] ** 0.5"),
        *scales("scale_no_sqrt", "/ {hd}"),
        *if_several(*scales("scale_c", "/ {C}"), *scales("scale_heads", "/ {nh}")),
        *scales("scale_tokens", "/ T", "/ self.context_length"),
        *scales("scale_twice", "{SCALE} {SCALE}"),
        *scales("scale_multiplied", "* {hd} ** 0.5", "* {hd}", *if_several("* {C}")),
        *scales("scale_precedence", *precedence),
        *mutants("scale_after_softmax", {"{SCALE}": ""} | step.SCALED_WEIGHTS, step.SCALED_WEIGHTS),
        *if_several(*scales("scale_sqrt_heads", "/ {nh} ** 0.5")),
        *scales("scale_sqrt_tokens", "/ T ** 0.5", "/ self.context_length ** 0.5"),
        *scales("scale_wrong_axis", "/ len(x) ** 0.5", *if_several("/ (len(x) * {nh}) ** 0.5")),
        *scales(
            "scale_rounded", "/ int({hd} ** 0.5)", "/ round({hd} ** 0.5)", "/ -({hd} ** 0.5 // -1)"
        ),
        *mutants("scale_rounded", *step.SCORES_ROUNDED, *rounded_late),
        *scales("scale_constant", *(f"/ {number}" for number in numbers)),
        # zeros, or nothing at all, in place of scores
        *scales("scores_ignored", "* 0.0"),
        Mutant("scores_ignored", {"{SCALE}": "* 0.0"} | step.SCORES_DETACHED),
        *softmaxes("softmax_query_axis", step.OVER_QUERIES, step.OVER_QUERIES_BY_HAND),
        *softmaxes("softmax_wrong_axis", *axes),
        *softmaxes("softmax_missing", step.ZERO_FILLED, "scores", step.SUM_ZERO_FILLED),
        *softmaxes("softmax_missing", *step.NO_SOFTMAX[1:], "scores.exp()"),
        *softmaxes("softmax_missing", "(scores - scores.amax(-1, keepdim=True)).exp()"),
        *mutants("softmax_missing", *each_softmax(step.NO_SOFTMAX, step.ZERO_FILL, step.FINITE)),
        *mutants("softmax_wrong_axis", *each_softmax(axes, step.FINITE)),
        # Over these axes no key takes a share from another key, so a mask after the softmax does
        # the same as a mask before it.
        *mutants(
            "softmax_wrong_axis", *each_softmax((*if_several(step.AXES[0]), step.AXES[1]), late)
        ),
        Mutant("mask_missing", step.NO_MASK),
        *mutants("mask_reversed", "~{VISIBLE}.mT", "{VISIBLE}", replacing="{HIDDEN}"),
        *mutants("mask_reversed", step.MASK_INVERTED | step.FINITE, low | step.MASK_INVERTED),
        *mutants(
            "mask_excludes_self",
            "~{VISIBLE}.tril(-1)",
            "~torch.cat([{VISIBLE}[:1], {VISIBLE}.tril(-1)[1:]])",
            "~torch.cat([{VISIBLE}[:1] | True, {VISIBLE}.tril(-1)[1:]])",
            replacing="{HIDDEN}",
        ),
        *mutants(
            "mask_excludes_self",
            without_self | step.FINITE,
            without_self | step.AS_NUMBERS,
            low | without_self,
        ),
        Mutant("mask_peeks_one", "torch.ones_like({VISIBLE}).triu(2)", replacing="{HIDDEN}"),
        *mutants(
            "mask_peeks_ahead",
            "torch.ones_like({VISIBLE}).triu(3)",
            "torch.ones_like({VISIBLE}).triu(4)",
            replacing="{HIDDEN}",
        ),
        *mutants("mask_zero_fill", *fills(0.0)),
        *mutants("mask_plus_inf", *fills("torch.inf")),
        *mutants("mask_high_fill", *fills(1e9), *added_mask_edits(1e9)),
        Mutant("mask_after_softmax", late),
        *mutants("mask_nan", *step.NAN_PRODUCTS),
        *mutants(
            "mask_nan",
            {HIDE: "", "{SOFTMAX}": late_infinity},
            {HIDE: "", "{SOFTMAX}": f"(e := {late_infinity}) / e.sum(-1, keepdim=True)"},
        ),
        *mutants("mask_added", *step.MASKS_ADDED, *each_with(step.MASKS_ADDED, step.LATE_SCALE)),
        *mutants("mask_weak_fill", *each_with((*fills(*weak[:3]), *added_weak), step.LATE_SCALE)),
        Mutant("mask_sdpa_inverted", step.MASK_INVERTED | step.AS_NUMBERS),
        # the same by hand, with nan_to_num
        Mutant("mask_reversed", step.MASK_INVERTED | step.AS_NUMBERS),
        *mutants("mask_weak_fill", *fills(*weak), *added_weak, *step.LOW_FILLS),
        *mutants("mask_weak_fill", *if_several(*step.OF_HEADS)),
        *mutants("mask_weak_fill", *each_with(step.LOW_FILLS, step.LATE_SCALE)),
        *mutants(
            "mask_not_sliced", "", "[:T]", ".expand(*scores.shape[:-1], T)", replacing="[:T, :T]"
        ),
        *mutants(
            "size_wrong_axis",
            new_mask("len(x)"),
            *if_several(new_mask("{nh}")),
            f"{new_mask('len(x)')}.expand(scores.shape)",
            replacing="{HIDDEN}",
        ),
        Mutant("size_wrong_axis", "[: len(x), : len(x)]", replacing="[:T, :T]"),
        Mutant("mask_not_moved", "self.{mask} = {mask}", replacing="{BUFFER}"),
        Mutant(
            "mask_not_moved",
            f"vars(self).setdefault('masks', {{{{}}}}).setdefault(T, {new_mask('T')})",
            replacing="{HIDDEN}",
        ),
        *(
            Mutant(
                "mask_is_parameter",
                {
                    "{BUFFER}": f"self.{{mask}} = nn.Parameter({{visible}}.float(), {learned})",
                    "{HIDDEN}": "~self.{mask}[:T, :T].bool()",
                },
            )
            for learned in ("requires_grad=False", "requires_grad=True")
        ),
        Mutant("context_unchecked", {FIT: "if False:", "{HIDDEN}": new_mask("T")}),
    )


def arguments_renamed(old, new):
    """Return an edit of either reference that gives these arguments other names.

    Both texts contain the annotations.
    """
    assigned = f"{argument_names(old)} = {argument_names(new)}"
    return Mutant("interface", {old: new, INIT: f"{INIT}\n        {assigned}"})


def argument_names(parameters):
    """Return the names of these parameters, without annotations and defaults."""
    return ", ".join(parameter.split(":")[0] for parameter in parameters.split(", "))


def wrong_view_mutants(**sizes):
    """Return a mutant for each of these sizes: q, k and v, (B, T, C), are viewed with it."""
    listed = []
    for size in written_in(**sizes):
        B, T, C = ({"B": "len(x)", "T": "T", "C": "t.shape[-1]"} | size).values()
        line = f"q, k, v = (t.view({B}, {T}, {C}) for t in (q, k, v))"
        listed.append(Mutant("hard_coded_shape", insert_before("{PROJECTED}", line)))
    return listed


def more_layers(**layers):
    """Return mutants with a layer that should not exist, and that acts on the output.

    Args:
        layers: for each name, the text that makes the layer, and the text that applies it to the
            output.
    """
    values_layer = f"self.W_value = {MADE}"
    return [
        Mutant(
            "params_extra",
            {values_layer: f"{values_layer}\n        self.{name} = {text}", "{OUT}": applied},
        )
        for name, (text, applied) in layers.items()
    ]


NORM, TEMPERATURE = (
    ("nn.LayerNorm(d_out)", "self.norm({OUT})"),
    ("nn.Parameter(torch.ones(()))", "{OUT} * self.temperature"),
)
FIRST_MASK = f"vars(self).setdefault('seen', {new_mask('T')})"
WEIGHTS = "self.dropout({SOFTMAX})"
NO_DROPOUT, OUT_DROPPED = {WEIGHTS: "{SOFTMAX}"}, {"{OUT}": "self.dropout({OUT})"}


class Runs:
    """Mutants that one head and several have in common."""

    # The layers.
    LAYERS = (
        *mutants(
            "qkv_order",
            *("k, q, v =", "v, k, q =", "q, v, k =", "v, q, k =", "k, v, q ="),
            replacing="q, k, v =",
        ),
        *mutants("values_wrong_source", "@ k", "@ {X_AS_VALUES}", "@ q", replacing="@ v"),
        *mutants("weight_not_transposed", *edits_of_layers("", AS_STORED)),
        *(
            Mutant("proj_bias", edit)
            for bias in ("True", "False")
            for edit in edits_of_layers(f"self.{{0}} = nn.Linear(d_in, d_out, bias={bias})")
        ),
        Mutant(
            "proj_bias",
            edits_of_layers("self.{0} = nn.Linear(d_in, d_out, bias=not qkv_bias)")[0],
        ),
    )

    # Dropout in other places, at other rates, and in other modes.
    DROPOUT = (
        *mutants(
            "dropout_always_on",
            "nn.functional.dropout({SOFTMAX}, self.dropout.p)",
            "nn.functional.dropout({SOFTMAX}, self.dropout.p, not self.training)",
            replacing=WEIGHTS,
        ),
        Mutant("dropout_missing", NO_DROPOUT),
        *mutants(
            "dropout_before_softmax",
            NO_DROPOUT | {"scores.masked_fill": "self.dropout(scores).masked_fill"},
            {WEIGHTS: "self.dropout(scores).softmax(dim=-1)"},
        ),
        Mutant("dropout_on_output_only", NO_DROPOUT | OUT_DROPPED),
        *mutants("dropout_extra", {WEIGHTS: f"self.dropout({WEIGHTS})"}, OUT_DROPPED),
        *mutants(
            "dropout_rate_fixed",
            *(f"nn.Dropout({rate})" for rate in ("0.1", "0.5", "1 - dropout")),
            replacing="nn.Dropout(dropout)",
        ),
    )

    # kept state, gradients, and hard-coded sizes of the input
    INPUT = (
        *mutants("state_kept", FIRST_MASK, f"{FIRST_MASK}[:T, :T]", replacing="{HIDDEN}"),
        *at_first(
            "state_kept",
            "if not self.training:\n            self.dropout.p = 0.0",
            "x = x[: vars(self).setdefault('batch', len(x))]",
        ),
        Mutant("state_kept", step.ANSWERS_KEPT),
        *at_first(
            "state_kept",
            "self.was = self.training or getattr(self, 'was', False)\n"
            "        self.dropout.train(self.was)",
        ),
        Mutant("state_kept", step.MOST_TOKENS_KEPT),
        Mutant("gradient_cut", "({OUT}).detach()", replacing="{OUT}"),
        Mutant("gradient_cut", "weights.detach() @", replacing="weights @"),
        *at_first("gradient_cut", "x = x.detach()"),
        *mutants("gradient_cut", *step.PARTS_DETACHED, *edits_of_layers("", DETACHED)[1:4]),
        *wrong_view_mutants(B=(2, 1, 8, 4, 3, 16, 32)),
        *wrong_view_mutants(T=(6, 4, 8, 5, 16, 1024)),
    )

    # changes of x, and hard-coded decimals and dtypes
    ON_THE_WAY = (
        *edits.written_into(
            "detach().zero_()", sizes="{SIZES}", out="{OUT}", copies=("given = x",)
        ),
        *at_first("input_mutated", "x.mul_(0.5)"),
        *edits.rounding_mutants("{OUT}"),
        Mutant("hard_coded_dtype", "({OUT}).float()", replacing="{OUT}"),
        *at_first("hard_coded_dtype", "x = x.float()"),
        Mutant("hard_coded_dtype", "({OUT}).half()", replacing="{OUT}"),
    )

    # hard-coded sizes of the mask, and a hard-coded device
    WRITTEN_IN = (
        *mutants(
            "hard_coded_shape",
            *(f"[:{n}, :{n}]" for n in (6, 4, 8, 5, 7)),
            replacing="[:T, :T]",
        ),
        *mutants(
            "hard_coded_shape",
            *(f"torch.ones({n}, {n}" for n in (6, 4, 5, 8)),
            replacing="torch.ones(context_length, context_length",
        ),
        Mutant(
            "hard_coded_device",
            new_mask("T").replace(", device=x.device", ""),
            replacing="{HIDDEN}",
        ),
    )

    # one layer under two names
    SHARED = mutants(
        "params_not_registered",
        *(
            {f"self.{name} = {MADE}": f"self.{name} = self.{source}"}
            for name, source in (("W_key", "W_query"), ("W_value", "W_key"), ("W_value", "W_query"))
        ),
    )

    # other arguments, and parts that are not written
    SIGNATURES = (
        Mutant("super_init_missing", "pass", replacing=INIT),
        *mutants(
            "interface",
            "dropout: float, qkv_bias: bool",
            "qkv_bias: bool = False, dropout: float = 0.0",
            replacing=OPTIONS,
        ),
        BIAS_BY_DEFAULT,
        Mutant("stub_untouched", 'raise NotImplementedError("your turn")', replacing=INIT),
        Mutant(
            "stub_untouched",
            {INIT: f"{INIT}\n        return", FIT: f"raise NotImplementedError\n        {FIT}"},
        ),
        Mutant("hard_coded_dtype", "scores.float().softmax(dim=-1)", replacing="{SOFTMAX}"),
        KEYS_NOT_TRANSPOSED,
    )
