"""Edits that the references of modules share: arguments and answers of forward, and layers."""

from manyheads.checks import Mutant

from ._mutants import (
    HEADS_NOT_JOINED,
    KEYS_NOT_TRANSPOSED,
    added_mask_kept,
    dropped_in_place,
    insert_before,
    mutants,
)

CASTS = ("float", "double", "half")
# Texts of the references with a fused projection. With grouped queries the first three are the
# same.
SIZES, UNDIVIDED, SOFTMAX = (
    "B, T, C = x.shape",
    "if n_embd % n_head != 0:",
    "scores.softmax(dim=-1)",
)
QKV, OUT = (
    "self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)",
    "self.resid_dropout(self.proj(y))",
)
REFUSED = 'raise ValueError(f"T = {T} tokens do not fit block_size = {self.block_size}")'
PROJ = "self.proj = nn.Linear(n_embd, n_embd, bias=False)"
THREE = (
    "self.W_query, self.W_key, self.W_value = (nn.Linear(n_embd, n_embd, bias=False) for _ in"
    " range(3))"
)
BARE = "self.qkv = nn.Parameter(torch.randn(3 * n_embd, n_embd) / n_embd**0.5)"
WEIGHTS = f"self.attn_dropout({SOFTMAX})"
HIDING = "scores = scores.masked_fill(~self.visible[:T, :T], -math.inf)"
RATES = [f"self.{name}_dropout = nn.Dropout(dropout)" for name in ("attn", "resid")]

# Dropout in all modes, and of the scores.
ALWAYS, OUT_ALWAYS = (
    f"nn.functional.dropout({t}, self.attn_dropout.p)" for t in (SOFTMAX, "self.proj(y)")
)
TRAINING, EARLY = (
    f"self.attn_dropout.train()({SOFTMAX})",
    "self.attn_dropout(scores).softmax(dim=-1)",
)


def insert_after(line, statement):
    """Return the edit that inserts a statement after a line, indented as in a method."""
    return {line: f"{line}\n        {statement}"}


def cast(sizes=SIZES, paths=("",)):
    """Return mutants that convert x to a hard-coded dtype.

    Args:
        sizes: the line that reads the sizes of x.
        paths: conditions of the form `if … else x`, for a cast on one path.
    """
    return mutants(
        "hard_coded_dtype",
        *(insert_before(sizes, f"x = x.{to}(){path}") for to in CASTS for path in paths),
    )


def on_a_device(sizes=SIZES, layer_call="self.qkv(x"):
    """Return mutants that move x to a hard-coded device.

    Args:
        sizes: the line that reads the sizes of x.
        layer_call: the beginning of the first layer's call.
    """
    moved = ("x + torch.zeros(x.shape, dtype=x.dtype)", "x.cpu()")
    return mutants(
        "hard_coded_device",
        *(insert_before(sizes, f"x = {x}") for x in moved),
        {layer_call: f"{layer_call}.cuda()"},
    )


def written_into(*writes, sizes=SIZES, out=OUT, copies=("given, x = x, x.clone()",)):
    """Yield mutants that change x after everything is computed.

    Args:
        writes: the methods that change x.
        copies: lines that make forward compute with a copy, so that x can be changed.
    """
    for write in writes:
        for copy in copies:
            copied = {sizes: f"{copy}\n        {sizes}"}
            yield Mutant(
                "input_mutated",
                {f"return {out}": f"out = {out}\n        given.{write}\n        return out"}
                | copied,
            )


def answers(out=OUT):
    """Return mutants whose forward does not return its answer as a tensor."""
    texts = (f"return {out}, None", f"return [{out}]", out, f"return {out}.detach().numpy()")
    return mutants("interface", *(text for text in texts), replacing=f"return {out}")


def rounding_mutants(out=OUT):
    """Return mutants whose forward rounds its answer to decimals."""
    return mutants(
        "output_rounded", *(f"({out}).round(decimals={n})" for n in (4, 3, 2)), replacing=out
    )


def other_rates(of_the_fast_path=None):
    """Yield mutants whose dropout rate is not the one that is asked for.

    Args:
        of_the_fast_path: the line that sets the rate of a path through PyTorch's own function, if
            there is one.
    """
    for rate in ("0.1", "1 - dropout"):
        of_weights, of_output = ({line: line.replace("dropout)", f"{rate})")} for line in RATES)
        fast_path = {}
        if of_the_fast_path:
            fast_rate = rate.replace("dropout", "self.dropout")
            fast_path = {of_the_fast_path: of_the_fast_path.replace("self.dropout", fast_rate)}
        yield from mutants(
            "dropout_rate_fixed",
            of_weights | of_output | fast_path,
            of_weights | fast_path,
            of_output,
        )


UNCHECKED = mutants(
    "divisibility_unchecked",
    *(text for text in ("if False:", "if block_size % n_head != 0:")),
    replacing=UNDIVIDED,
)

# The same line in every reference with a fused projection, and with grouped queries.
ADDED_MASK_KEPT = added_mask_kept(HIDING, "~self.visible[:T, :T]")
LAST = (*answers(), KEYS_NOT_TRANSPOSED, HEADS_NOT_JOINED, dropped_in_place("attn_dropout"))
DROPOUT = (
    *mutants(
        "dropout_always_on",
        {WEIGHTS: ALWAYS, OUT: OUT_ALWAYS},
        {WEIGHTS: ALWAYS},
        {OUT: OUT_ALWAYS},
    ),
    Mutant("dropout_always_on", TRAINING, replacing=WEIGHTS),
    Mutant("dropout_missing", {WEIGHTS: SOFTMAX, OUT: "self.proj(y)"}),
    *mutants("dropout_before_softmax", {WEIGHTS: EARLY}, {WEIGHTS: EARLY, OUT: "self.proj(y)"}),
    Mutant("dropout_on_output_only", SOFTMAX, replacing=WEIGHTS),
    Mutant("dropout_output_missing", "self.proj(y)", replacing=OUT),
    *mutants(
        "dropout_extra",
        {WEIGHTS: f"self.attn_dropout({WEIGHTS})"},
        {OUT: f"self.resid_dropout({OUT})"},
    ),
    *other_rates(),
)


def with_bias(*layers):
    """Return the edit that gives these layers a bias of zeros."""
    changes = {}
    for layer in layers:
        name, n_out = layer.split(" = ")[0], layer.split(", ")[1]
        changes |= insert_after(layer, f"{name}.bias = nn.Parameter(torch.zeros({n_out}))")
    return changes


def kept_as_buffers(*layers):
    """Return the edit that keeps the weights of these layers as buffers."""
    changes = {}
    for layer in layers:
        name = layer.split(" = ")[0]
        changes |= insert_after(
            layer,
            f"weight = {name}.weight.detach()\n        del {name}.weight\n"
            f'        {name}.register_buffer("weight", weight, persistent=False)',
        )
    return changes


def made_anew(*layers):
    """Return the edit that makes these layers anew in each call, before anything is dropped."""
    changes, statements = {}, []
    for layer in layers:
        name, new = layer.replace("n_embd", "C").replace("n_kv", "self.n_kv").split(" = ")
        anew = name.replace("self.", "new_")
        statements.append(f"{anew} = {new}.to(x)")
        changes[f"{name}("] = f"{anew}("
    return changes | insert_after(REFUSED, "\n        ".join(statements))


def rename_layers(**names):
    """Return the edit that gives layers these names: old="new"."""
    changes = {}
    for old, new in names.items():
        changes |= {f"self.{old}{after}": f"self.{new}{after}" for after in (" = ", "(")}
    return changes


def known_by_shape(out):
    """Return the edit that returns the first answer to an input of this shape again."""
    lines = (
        'answers = vars(self).setdefault("answers", {})\n'
        "        if x.shape in answers:\n            return answers[x.shape]"
    )
    return insert_before(
        SIZES, lines, {f"return {out}": f"return answers.setdefault(x.shape, {out})"}
    )


EXTRA = [
    insert_after(PROJ, statement)
    for statement in (
        "self.temperature = nn.Parameter(torch.ones(1))",
        "self.norm = nn.LayerNorm(n_embd)",
        "self.positions = nn.Parameter(torch.zeros(block_size + 1, n_embd))",
        "self.query = nn.Linear(n_embd, n_embd, bias=False)",
    )
]
BIASES = (with_bias(QKV, PROJ), with_bias(PROJ), with_bias(QKV))
NO_RATES = "self.attn_dropout.p = self.resid_dropout.p = 0.0"
PARAMS = (
    *mutants(
        "params_not_registered",
        kept_as_buffers(QKV, PROJ),
        kept_as_buffers(QKV),
        kept_as_buffers(PROJ),
        {"self.qkv = ": 'vars(self)["qkv"] = '},
        made_anew(QKV, PROJ) | {QKV: "", PROJ: ""},
        made_anew(PROJ) | {PROJ: ""},
        made_anew(QKV, PROJ),
        made_anew(PROJ),
    ),
    *mutants(
        "params_extra",
        rename_layers(qkv="c_attn", proj="c_proj"),
        {
            QKV: THREE,
            "self.qkv(x).split(C, dim=-1)": "self.W_query(x), self.W_key(x), self.W_value(x)",
        },
        {QKV: BARE, "self.qkv(x)": "nn.functional.linear(x, self.qkv)"},
        *EXTRA,
    ),
)
