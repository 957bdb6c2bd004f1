"""What is named of an attempt, at home and graded alike: a table of attempts, each a text with
small changes.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

import pytest

from bench.names import SampledAttempt, pairs_of, text_of, text_of_pair, unfinished_attempts
from manyheads.course import Exercise, load_course
from manyheads.course.model import with_neighbours
from manyheads.diagnosis import load_bank
from tests.diagnosis.both_sides import Sides, names, side_differences
from tests.make import REPOSITORY, edit_text

ATTEMPTS = Path(__file__).parent / "attempts"
Changes = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Case:
    """An attempt, and what is said of it.

    hidden: names that a hidden check alone proves.
    changes: of the right attempt of that exercise which lies here. of: "solution", where it is the
    solution that is changed; else a file of the course. unwritten: functions, or methods, without a
    body. named: names, in order, with what would do in their place. places: the function of
    each. tells: how the evidence of the first function begins.
    """

    exercise: str
    named: str = ""
    changes: Changes = ()
    origin: str = ""
    unwritten: Sequence[str] = ()
    states: str = ""
    tells: str = ""
    places: Mapping[str, str] = field(default_factory=dict)
    hidden: str = ""

    def text(self, exercise: Exercise) -> str:
        """The attempt's text."""
        path = ATTEMPTS / f"{self.exercise}.py"
        path = path if path.exists() and not self.origin else exercise.solution
        path = exercise.checks.parents[2] / self.origin if self.origin.endswith(".py") else path
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        text = edit_text("".join(line for line in lines if "### " not in line), *self.changes)
        return remove_bodies(text, self.unwritten) if self.unwritten else text


def remove_bodies(text: str, names: Sequence[str]) -> str:
    """The text, in which these have no body yet."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in names:
            node.body = ast.parse("raise NotImplementedError").body
    return ast.unparse([statement for statement in tree.body if not isinstance(statement, ast.If)])


def wrong_attempt(exercise: str, name: str) -> Case:
    """An attempt of the course that no misconception describes."""
    return Case(exercise, origin=f"grader/wrong/{exercise}/{name}.py")


# Of running_mean, the tiny course's.
GUARD = (
    '    if x.numel() == 0:\n        raise ValueError("x has 0 numbers; at least 1 is needed")\n',
    "",
)
MEAN = "    return x.cumsum(0) / torch.arange(1, len(x) + 1, dtype=x.dtype, device=x.device)"
SUM = (MEAN, "    return x.cumsum(0)")


def mean(body: str, named: str = "", *changes: tuple[str, str]) -> Case:
    """Another body for running_mean."""
    return Case("running_mean", named, ((MEAN, f"    {body}"), *changes))


QUERIES = ("softmax(-1)", "softmax(-2)")
MERGED = ("y.transpose(1, 2).flatten(2)", "y.reshape(len(x), T, -1)")
UNSCALED = (" / math.sqrt(q.shape[-1])", "")
SQUASHED = (" @ v", " @ v.tanh()")
UNCHECKED = ("if T > self.context:", "if False:")
AWAKE = ("self.p, self.training)", "self.p)")
BIASED = ("3 * n_embd, bias=False)", "3 * n_embd)")
GATED = ("self.dropout if self.training else 0.0", "self.dropout")
SCORED = "return q @ k.mT / math.sqrt(q.shape[-1])"
HEADS_APART = "each.view(B, T, self.n_head, -1)"
HIDDEN = "scores.masked_fill(~mask, -torch.inf)"
BY_ITSELF = "mask_scores(scores, torch.ones_like(scores).tril().bool())"
EACH_HEAD = "scores.masked_fill(~self.visible[:T, :T], -math.inf)"
LATER = "torch.ones(T, T, device=x.device).triu(1).nonzero(as_tuple=True)"
CUT_OFF = (
    "return x.new_empty(B, n_head, T, 4).copy_(x[..., :C - C % n_head].view(B, T, n_head, "
    '-1).transpose(1, 2)) or str(f"{C}'
)
AFTER = [
    ("torch.ones(T, T, dtype=torch.bool, device=device).tril()", "torch.ones(T, T).triu(1).bool()")
]
WITHOUT_LIMIT = ("if self.block_size < T:", "if False:")
WITHOUT_SIGN = ("(fast - by_hand).abs().max()", "(fast - by_hand).max()")
MEASURED = ("(fast - by_hand).abs().max()", "(fast - by_hand).abs().mean()")
KEEPS = [
    (
        "        B, T, C = x.shape\n",
        "        B, T, C = x.shape\n        cache = self.last if cache is None else cache\n",
    ),
    ("        self.n_head, self", "        self.last = None\n        self.n_head, self"),
    (
        'S = {"k": k, "v": v}, k.size(1)',
        'S = {"k": k, "v": v}, k.size(1)\n        self.last = cache',
    ),
]
ACCEPTED = (
    "this should be refused, and is accepted in silence: raise a ValueError that names the numbers"
)


def cache_case(cache_code: str, axis: int, named: str = "cache_wrong_axis") -> Case:
    """A cache of this shape, joined along this axis."""
    return Case("kv_cache", named, [(HEADS_APART, cache_code), ("dim=1)", f"dim={axis})")])


def scores_case(body: str, named: str = "") -> Case:
    """Another body for attention_scores."""
    return Case("attention_scores", named, [(SCORED, body)])


def split_case(body: str, named: str = "") -> Case:
    """Another body for split_heads."""
    old = (
        "    hd = x.shape[-1] // n_head\n"
        "    return torch.stack(x.split(hd, dim=-1)[:n_head], dim=1)"
    )
    return Case("reshape_dance", named, [(old, f"    {body}")])


CASES = {
    # The tiny course.
    "nothing is wrong": Case("running_mean"),
    "one fault, by its values": Case("running_mean", "sum_not_mean", [SUM]),
    "one fault, a refusal that does not come": Case("running_mean", "empty_unchecked", [GUARD]),
    "a value and a refusal": Case("running_mean", "sum_not_mean empty_unchecked", [SUM, GUARD]),
    "a pair of values": mean("return x.sum().expand_as(x) / len(x)", "counts_all sees_future"),
    "only the gradient": mean(
        "return x.detach().cumsum(0) / x.new_ones(len(x)).cumsum(0)", "gradient_cut"
    ),
    "wrong in a way that nobody listed": mean(
        "return (x.cumsum(0) / x.new_ones(len(x)).cumsum(0)) ** 2"
    ),
    "another shape that nobody listed": mean("return x[1:].cumsum(0)"),
    "a size that never changes": mean(
        "return (x.cumsum(0) / x.new_ones(len(x)).cumsum(0))[:5]", "hard_coded_shape"
    ),
    "a refusal of everything is no untouched stub": mean("raise ValueError('no')"),
    "a device that is not there is no refusal": mean(
        "raise AssertionError('Torch not compiled with CUDA enabled')", "hard_coded_device", GUARD
    ),
    "values, beside a refusal of its own kind": mean(
        "x[0]\n    return x.cumsum(0)", "sum_not_mean", GUARD
    ),
    "nothing written yet": mean("raise NotImplementedError()", "stub_untouched", GUARD),
    "an exception that says it": mean("return x.unfold(0, 2, 1).T.view(-1)", "view_not_contiguous"),
    "an exception that nobody knows": mean("return undefined"),
    "a type error of the student's own is no fault of the interface": mean(
        "return torch.cumsum(x, nonsense=0)"
    ),
    "a function of another name": Case(
        "running_mean", "interface", [("def running_mean", "def another")]
    ),
    # Two mistakes.
    "nothing in four functions": Case("attention_scores"),
    "an argument of another name, and an axis": Case(
        "attention_scores",
        "interface softmax_query_axis",
        [
            (
                "attention(x):\n    return (x @ x.mT).softmax(-1) @ x",
                "attention(t):\n    return (t @ t.mT).softmax(-2) @ t",
            )
        ],
    ),
    "more axes are no size that is written in": Case(
        "causal_mask", "interface", [("device).tril()", "device).tril()[None, None]")]
    ),
    "an axis more, and numbers": Case(
        "causal_mask",
        "interface mask_not_bool",
        [("device).tril()", "device).tril().float()[None]")],
    ),
    "a rate that is a size of the call, and a number of the text": Case(
        "fused_qkv",
        changes=[("nn.Dropout(dropout)", "nn.Dropout(block_size)")],
        origin="solution",
    ),
    "a size of the text, in the attempt's own refusal": Case(
        "reshape_dance",
        "hard_coded_shape",
        [("B, T, C = x.shape", "B, T, C = x.shape\n    C = 768")],
        origin="solution",
    ),
    "a length off the wrong axis, and a guard that compares it": Case(
        "self_attention", "size_wrong_axis", [("x.shape[1]", "x.shape[0]")], origin="solution"
    ),
    "a bias, and numbers of nobody's": Case(
        "sdpa_equivalence",
        "proj_bias",
        [BIASED, ("self.qkv(x).unflatten", "(2 * self.qkv(x)).unflatten")],
    ),
    "a bias, and queries taken for keys": Case(
        "sdpa_equivalence",
        "qkv_order proj_bias",
        [BIASED, (".permute(2, 0, 3, 1, 4)", ".permute(2, 0, 3, 1, 4)[[1, 0, 2]]")],
    ),
    (
        "heads that stay where they are, and an odd width that is cut in one call and fails in "
        "another"
    ): Case(
        "reshape_dance",
        "merge_no_transpose divisibility_unchecked",
        [("y.transpose(1, 2).flatten(2)", "y.reshape(len(y), y.shape[2], -1)")],
    ),
    "nothing on two paths": Case("sdpa_equivalence"),
    "no mask on one path, and a module that is left in eval mode": Case(
        "sdpa_equivalence",
        "mask_missing path_difference",
        [(", is_causal=True", ""), ("module.train(training).flash", "module.flash")],
    ),
    "layers in a list": Case("self_attention", "params_not_registered"),
    "layers of another name": Case(
        "self_attention",
        "params_extra",
        [("= [nn.Linear", "= nn.ModuleList([nn.Linear"), ("range(3)]", "range(3)])")],
    ),
    "layers made anew in each call": Case(
        "self_attention",
        "params_not_registered",
        [
            ("nn.Linear(d_in, d_out, bias=qkv_bias)", "(d_in, d_out, qkv_bias)"),
            ("layer(x) for", "nn.Linear(*layer)(x) for"),
        ],
    ),
    "both change the same numbers": Case(
        "weight_split", "softmax_query_axis merge_no_transpose", [QUERIES, MERGED]
    ),
    "one that single heads show alone": Case(
        "weight_split", "scale_missing merge_no_transpose", [UNSCALED, MERGED]
    ),
    "one that nobody listed beside another": Case("weight_split", "", [QUERIES, SQUASHED]),
    "a context that nobody checks, and scores that are not scaled": Case(
        "weight_split", "scale_missing context_unchecked", [UNCHECKED, UNSCALED]
    ),
    "a context that nobody checks, and a mistake that nobody listed": Case(
        "weight_split", "", [UNCHECKED, SQUASHED]
    ),
    "one that changes numbers, and one that changes its argument": Case(
        "causal_mask",
        "input_mutated mask_reversed",
        [(".tril()", ".triu()"), ("masked_fill(~mask", "masked_fill_(~mask")],
        origin="solution",
    ),
    "one that shows from the second chunk on": Case(
        "kv_cache",
        "cache_mask_top_left scale_sqrt_c",
        [
            ("torch.arange(past, past + T, ", "torch.arange(T, "),
            ("math.sqrt(self.head_dim)", "math.sqrt(C)"),
        ],
        origin="solution",
    ),
    "both show in each chunk": Case(
        "kv_cache",
        "mask_missing merge_no_transpose",
        [
            ("weights = scores.masked_fill(key > query, -math.inf)", "weights = scores"),
            ("y = y.transpose(1, 2)", "y = y"),
        ],
        origin="solution",
    ),
    "one stops some calls, the other shows in the rest": Case(
        "grouped_query_attention",
        "kv_heads_repeated_wrong softmax_wrong_axis",
        [
            ("group = self.n_head // self.n_kv_head", "group = self.n_head"),
            ("dim=-1) @ v", "dim=1) @ v"),
        ],
        origin="solution",
    ),
    "what one mistake answers is no evidence of two": Case(
        "weight_split",
        "scale_missing",
        [UNSCALED, (" @ v", " @ (v if self.training else (1 - self.p) * v)")],
        hidden="dropout_always_on",
    ),
    # What nobody listed.
    "an answer that begins right": wrong_attempt("tiled_attention", "lse_is_maximum"),
    "where all answers are near the reference's": wrong_attempt(
        "grouped_query_attention", "distance_bias"
    ),
    "where one token alone says as little": wrong_attempt("self_attention", "dropout_on_values"),
    "where one token says nothing": wrong_attempt("weight_split", "dropout_on_queries"),
    "where a part of the only head is left": wrong_attempt("weight_split", "dropout_on_values"),
    "numbers that no mutant has": Case("attention_scores", "", [("@ x.mT).", "@ x.mT).exp().")]),
    "keys for queries": Case(
        "attention_scores",
        "scores_wrong_source",
        [("attention_scores(q, k)) @", "attention_scores(k, k)) @")],
    ),
    # Sizes.
    "a mask of as many tokens as there are": Case("mha_by_loop"),
    "a mask of a size of no axis": Case("mha_by_loop", "hard_coded_shape", [("T, T", "32, 32")]),
    "a mask of a size of no axis, and large": Case(
        "mha_by_loop", "hard_coded_shape", [("T, T", "1024, 1024")]
    ),
    "heads of a number that leaves a rest": Case(
        "mha_by_loop",
        "hard_coded_shape",
        [("arange(C).split(mha.head_dim)", "arange(C // 8 * 8).split(C // 8)")],
    ),
    "a mask of the size of another axis, which three mistakes may have": Case(
        "mha_by_loop", "", [("T, T", "mha.head_dim, mha.head_dim")]
    ),
    "a size of one public call": split_case(
        "return x.view(len(x), 9, n_head, -1).transpose(1, 2)", "hard_coded_shape"
    ),
    "a batch of one public call": split_case(
        "return x.view(5, x.shape[1], n_head, -1).transpose(1, 2)", "hard_coded_shape"
    ),
    "a size of no call": split_case(
        "return x.view(len(x), 20, n_head, -1).transpose(1, 2)", "hard_coded_shape"
    ),
    "a size of no call, and values that are wrong there, too": split_case(
        "return x.view(len(x), 20, n_head, -1).transpose(1, 2) * 2", "hard_coded_shape"
    ),
    "a refusal of everything tells no size": split_case("raise ValueError('not for 20')"),
    "the length of the batch for that of the sequence": split_case(
        "return x.view(x.shape[1], len(x), n_head, -1).transpose(1, 2)"
    ),
    "an exception everywhere, and no size": Case(
        "attention_scores", "", [("k.transpose(-2, -1)", "k.transpose(-2, -3)")], origin="solution"
    ),
    "a product for a quotient": Case(
        "reshape_dance", "", [("C // n_head", "C * n_head")], origin="solution"
    ),
    "two axes": scores_case("T, hd = q.shape\n    " + SCORED, "hard_coded_shape"),
    "three axes": scores_case("B, T, hd = q.shape\n    " + SCORED, "hard_coded_shape"),
    "four axes": scores_case("B, nh, T, hd = q.shape\n    " + SCORED, "hard_coded_shape"),
    "three axes at least": scores_case("q.transpose(0, -3)\n    " + SCORED, "hard_coded_shape"),
    "an axis too many for two": scores_case(
        SCORED + "[None] if q.dim() < 3 else q @ k.mT / math.sqrt(q.shape[-1])", "hard_coded_shape"
    ),
    "three axes at least, and numbers of nobody's": scores_case(
        "q.transpose(0, -3)\n    " + SCORED + ".tanh()"
    ),
    "a refusal of more axes than two": scores_case(
        "if q.dim() > 2: raise ValueError(q.shape)\n    " + SCORED, "refuses_allowed"
    ),
    "a module that only raises has no number of axes written in": Case(
        "weight_split", "", [("self.out_proj(y", "self.p(y")]
    ),
    "a layer of another width, whatever its own weights answer": Case(
        "grouped_query_attention", "layer_widths"
    ),
    # The order of arguments.
    "the other order of arguments": Case(
        "attention_scores",
        "interface qkv_order",
        [("def attention_scores(q, k)", "def attention_scores(k, q)")],
    ),
    "the other order of arguments, and values": Case(
        "attention_scores",
        "scale_missing qkv_order",
        [("def attention_scores(q, k)", "def attention_scores(k, q)"), UNSCALED],
    ),
    "the other order of a module's inputs": Case(
        "cross_attention",
        "sides_swapped",
        [("self, x, context,", "self, context, x,"), ("softmax(-2)", "softmax(-1)")],
    ),
    # Numbers.
    **{
        f"a scale of {number}": Case(
            "attention_scores", "scale_constant", [("/ math.sqrt(q.shape[-1])", f"* {number}")]
        )
        for number in (0.0371, 1.7, 41.3)
    },
    "a scale of 0.3 in a module": Case(
        "weight_split", "scale_constant", [("/ math.sqrt(q.shape[-1])", "* 0.3")]
    ),
    "a scale of 0.3 in a loop": Case(
        "mha_by_loop", "scale_constant", [("math.sqrt(hd)", "3.3")], origin="solution"
    ),
    "a fill of -1.3": Case(
        "fused_qkv",
        "mask_weak_fill",
        [(EACH_HEAD, EACH_HEAD.replace("-math.inf", "-1.3"))],
        origin="solution",
    ),
    "a logarithm of the width, a number where a function is asked for one width": Case(
        "fused_qkv",
        "",
        [("math.sqrt(self.head_dim)", "math.log(self.head_dim)")],
        origin="solution",
    ),
    "half of the scale, which a wrong view imitates there": Case(
        "fused_qkv",
        "",
        [("math.sqrt(self.head_dim)", "(2 * math.sqrt(self.head_dim))")],
        origin="solution",
    ),
    "twice the width, which few calls tell from a number": Case(
        "weight_split", "", [("/ math.sqrt(q.shape[-1])", "/ math.sqrt(2 * q.shape[-1])")]
    ),
    "a maximum is no scale however large": Case(
        "attention_scores",
        "",
        [
            (
                "scores.softmax(-1)",
                "torch.nn.functional.one_hot(scores.argmax(-1), scores.shape[-1]).to(scores)",
            ),
            ("import math", "import math, torch"),
        ],
    ),
    **{
        f"{fill} in {where}": Case("causal_mask", "mask_weak_fill", changes)
        for fill in ("scores.masked_fill(~mask, -5.55)", "scores + ~mask * -27.3")
        for replacement in [
            (
                BY_ITSELF,
                f"({fill.replace('~mask', '~causal_mask(scores.shape[-1], scores.device)')})",
            )
        ]
        for where, changes in (
            ("both", [replacement, (HIDDEN, fill)]),
            (
                "mask_scores alone",
                [
                    (HIDDEN, fill),
                    (
                        BY_ITSELF,
                        (
                            "scores.masked_fill(~causal_mask(scores.shape[-1], scores.device), "
                            "-torch.inf)"
                        ),
                    ),
                ],
            ),
            ("causal_weights alone", [replacement]),
        )
    },
    "how the infinity is written hides no name": Case("cross_attention", "softmax_query_axis"),
    # What an answer proves by itself.
    "nothing in a window": Case("sliding_window"),
    "one of two refusals": Case(
        "sliding_window", "argument_unchecked", [("window < 1 or", "window < 0 or")]
    ),
    "a device": Case("sliding_window", "hard_coded_device", [(", device=device", "")]),
    "a changed argument": Case(
        "sliding_window", "input_mutated", [("q @ k.mT", "q @ k.mul_(2).div_(2).add_(1e-12).mT")]
    ),
    "each stands at the function that gave it": Case(
        "tiled_attention",
        "tile_no_rescale hard_coded_device",
        places={"tile_no_rescale": "online_softmax", "hard_coded_device": "tiled_attention"},
    ),
    "heads that are averaged, where the projection raises": Case(
        "weight_split",
        "heads_one_width|heads_averaged",
        [("y.transpose(1, 2).flatten(2)", "y.mean(1)")],
    ),
    "rows that are dealt to q, k and v by turns": Case(
        "mha_by_loop",
        "qkv_packed_per_head|qkv_sliced_by_columns",
        [("mha.qkv.weight.split(C)", "(mha.qkv.weight[i::3] for i in range(3))")],
    ),
    "one head's rows in every round": Case(
        "mha_by_loop", "heads_one_for_all", [("W[rows]", "W[:mha.head_dim]")]
    ),
    "one head's answer, repeated": Case(
        "mha_by_loop",
        "heads_one_for_all",
        [("torch.cat(heads, dim=-1)", "heads[-1].repeat(1, 1, len(heads))")],
    ),
    "heads that are joined along the batch": Case(
        "mha_by_loop", "merge_no_transpose", [("heads, dim=-1", "heads, dim=0")]
    ),
    "heads that stay before the positions, on both paths": Case(
        "sdpa_equivalence",
        "merge_no_transpose",
        [("y.transpose(1, 2).flatten(2)", "y.reshape(x.shape)")],
    ),
    "a fused call without a mask": Case(
        "sdpa_equivalence", "mask_missing", [(", is_causal=True", "")]
    ),
    "a fused call with a mask of zeros and ones": Case(
        "sdpa_equivalence", "mask_added", [("is_causal=True", "attn_mask=x.new_ones(T, T).tril()")]
    ),
    "layers in a list that no .to reaches": Case(
        "kv_cache",
        "params_not_registered",
        origin="solution",
        changes=[
            (
                "self.proj = nn.Linear(n_embd, n_embd, bias=False)",
                "self.layers = [nn.Linear(n_embd, n_embd, bias=False)]",
            ),
            ("self.proj(", "self.layers[0]("),
        ],
    ),
    "what three mistakes raise alike": Case(
        "sdpa_equivalence",
        "",
        [
            *[
                (
                    f"{n} = {n}.view(B, T, self.n_head, self.head_dim).transpose(1, 2)",
                    f"{n} = {n}.view(B, T, self.n_head, self.head_dim)",
                )
                for n in "qkv"
            ],
            ("y.transpose(1, 2).reshape(B, T, C)", "y.transpose(1, 2).flatten(2)"),
        ],
        origin="solution",
    ),
    # Refusals.
    "the tokens' axis, heads apart": cache_case(HEADS_APART, 1, ""),
    "the tokens' axis": cache_case("each.view(B, T, C)", 1, ""),
    "the heads' axis": cache_case(HEADS_APART, 2),
    "the batch's axis, heads apart": cache_case(HEADS_APART, 0),
    "the channels' axis": cache_case("each.view(B, T, C)", -1),
    "the batch's axis": cache_case("each.view(B, T, C)", 0),
    "refuses whatever the heads": Case(
        "fused_qkv", "refuses_allowed", [("if n_embd % n_head != 0:", "if True:")]
    ),
    "refuses the limit": Case(
        "self_attention",
        "refuses_allowed",
        [("if self.context_length < T:", "if self.context_length <= T:")],
        origin="solution",
    ),
    "who gives nothing at all lets nothing through": Case(
        "self_attention",
        "interface",
        [("        T = x.shape[1]\n", "        return\n")],
        origin="solution",
    ),
    "a limit the wrong way round": Case(
        "weight_split",
        "refuses_allowed",
        [("if self.context_length < T:", "if self.context_length > T:")],
        origin="solution",
    ),
    "a guard that is met through another function": Case(
        "sliding_window",
        "refuses_allowed argument_unchecked",
        [("if T_q > T_k:", "if T_q == T_k:")],
        origin="solution",
    ),
    "refuses what no whole blocks make": Case(
        "tiled_attention",
        "tile_ragged_refused",
        origin="solution",
        changes=[
            (
                "    for top in range(0, T, block_q):",
                (
                    "    if T % block_q or T % block_k:\n        raise ValueError(T)\n"
                    "    for top in range(0, T, block_q):"
                ),
            )
        ],
    ),
    "even for odd": Case("rotary", "refuses_allowed", [("if hd % 2:", "if not hd % 2:")]),
    "an assertion about what is computed is no guard": Case(
        "kv_cache",
        "",
        [("split(C, dim=-1)", "split(C, dim=-1)\n        assert q.shape == (B, C, T)")],
        origin="solution",
    ),
    # Places.
    "a cut that no mutant has": Case(
        "attention_scores", "gradient_cut", [("k)) @ v", "k)).detach() @ v")]
    ),
    "nothing of a module": Case("weight_split"),
    "a refusal of another kind": Case(
        "weight_split", "divisibility_unchecked", [('raise ValueError(f"{d', 'raise OSError(f"{d')]
    ),
    "parameters of its own": Case(
        "weight_split",
        "params_extra",
        [
            (
                "bias=qkv_bias) for _ in range(3))",
                "bias=qkv_bias) for _ in range(3))\n        self.more = nn.LayerNorm(d_in)",
            )
        ],
    ),
    "a parameter of the mask's shape": Case(
        "weight_split",
        "mask_is_parameter",
        [
            (
                "bias=qkv_bias) for _ in range(3))",
                (
                    "bias=qkv_bias) for _ in range(3))\n"
                    "        self.more = nn.Linear(context_length, context_length, bias=False)"
                ),
            )
        ],
    ),
    "a parameter that is as wide as long in one call": Case(
        "fused_qkv",
        "params_extra",
        [
            (
                "self.n_head = n_head",
                "self.n_head, self.positions = n_head, nn.Embedding(block_size, n_embd)",
            )
        ],
    ),
    "a parameter of the mask's shape, with more axes": Case(
        "fused_qkv",
        "mask_is_parameter",
        [
            (
                "self.n_head = n_head",
                (
                    "self.n_head, self.seen = n_head, nn.Parameter(torch.ones(1, 1, block_size, "
                    "block_size))"
                ),
            )
        ],
    ),
    "a name that is looked up in vain is no wrong size": Case(
        "fused_qkv", "", [("if size not in sizes:", "if False:")]
    ),
    "sizes of another model": Case("fused_qkv", "gpt2_sizes", [("1024, 16", "1024, 12")]),
    "one layer of several that is cut off": Case(
        "mha_by_loop", "gradient_cut", [("mha.qkv.weight", "mha.qkv.weight.data")]
    ),
    "all layers, by hand, which only a layer of torch's own may copy": Case(
        "mha_by_loop",
        "gradient_cut",
        [
            ("mha.qkv.weight", "mha.qkv.weight.data"),
            (
                "mha.proj(torch.cat(heads, dim=-1))",
                "torch.cat(heads, dim=-1) @ mha.proj.weight.data.mT",
            ),
        ],
    ),
    # What is not written yet comes last, and hides nothing.
    "places of ones are asked for": Case(
        "fused_qkv",
        "mask_missing stub_untouched",
        [(EACH_HEAD, f"scores + 0 * scores[..., {LATER}[0][:0]].sum()")],
        unwritten=["gpt2_attention"],
    ),
    "a parent that is not woken, after the refusal": Case(
        "fused_qkv",
        "super_init_missing stub_untouched",
        [("        super().__init__()\n", "")],
        unwritten=["gpt2_attention"],
    ),
    "what is left over is cut off": Case(
        "reshape_dance",
        "divisibility_unchecked stub_untouched",
        [('raise ValueError(f"{C}', CUT_OFF)],
        origin="solution",
        unwritten=["merge_heads"],
    ),
    "half of a view both ways": Case(
        "reshape_dance",
        "merge_no_transpose|wrong_view_both|heads_missing_transpose stub_untouched",
        [("y.transpose(1, 2).contiguous()", "y.contiguous()")],
        origin="solution",
        unwritten=["split_heads"],
    ),
    "a reversed mask that stays on one device": Case(
        "causal_mask",
        "mask_reversed hard_coded_device stub_untouched",
        AFTER,
        origin="solution",
        unwritten=["causal_weights"],
    ),
    "a reversed mask that stays on one device, and nothing else yet": Case(
        "causal_mask",
        "mask_reversed hard_coded_device stub_untouched",
        AFTER,
        origin="solution",
        unwritten=["mask_scores", "causal_weights"],
    ),
    "what is written is told, and not that something is not": Case(
        "fused_qkv",
        "divisibility_unchecked stub_untouched",
        [("if n_embd % n_head != 0:", "if False:")],
        unwritten=["forward", "gpt2_attention"],
        tells=ACCEPTED,
    ),
    "what is told of a function shows the first of two mistakes": Case(
        "sdpa_equivalence",
        "dropout_always_on context_unchecked",
        [("if self.training else 0.0", ""), WITHOUT_LIMIT],
        origin="solution",
        tells="a second call in eval mode changes",
    ),
    "what is told of a function shows the second one alone": Case(
        "sdpa_equivalence", "context_unchecked", [WITHOUT_LIMIT], origin="solution", tells=ACCEPTED
    ),
    "the measure is wrong": Case(
        "sdpa_equivalence", "path_difference", [MEASURED], origin="solution", states="right wrong"
    ),
    # at home, the check of the measure runs last, and only if every other check passes
    "what it measures is wrong, too": Case(
        "sdpa_equivalence",
        "context_unchecked",
        [WITHOUT_SIGN, WITHOUT_LIMIT],
        origin="solution",
        hidden="path_difference",
    ),
    # What chance answers.
    "a dropout that is not told of eval": Case("weight_split", "dropout_always_on", [AWAKE]),
    "a rate that is given to the fused call alone, whatever the mode": Case(
        "sdpa_equivalence",
        "dropout_always_on",
        [("self.dropout if self.training else 0.0", "0.1")],
        origin="solution",
    ),
    "noise, which nobody listed": Case(
        "weight_split", "", [("self.out_proj(y", "(1 + torch.rand(()) / 9) * self.out_proj(y")]
    ),
    "a dropout that is told neither eval nor its rate": Case(
        "fused_qkv",
        "dropout_always_on dropout_rate_fixed",
        [
            (
                "self.attn_dropout(scores.softmax(dim=-1))",
                "nn.functional.dropout(scores.softmax(dim=-1), 0.1)",
            )
        ],
    ),
    "what chance answers in other functions, too, may follow": Case(
        "sdpa_equivalence", "dropout_always_on", [GATED], origin="solution"
    ),
    "what chance answers in one function, where another works around it": Case(
        "sdpa_equivalence",
        "dropout_always_on",
        [
            GATED,
            (
                "flash, modes = module.flash",
                "(p, module.dropout), (flash, modes) = (module.dropout, 0.0), (module.flash",
            ),
            ("for part in module.modules()]\n", "for part in module.modules()])\n"),
            ("        module.flash = flash\n", "        module.flash, module.dropout = flash, p\n"),
        ],
        origin="solution",
    ),
    "chance, and scores that are not scaled": Case(
        "weight_split", "scale_missing dropout_always_on", [AWAKE, UNSCALED]
    ),
    "chance, and a mistake that nobody listed": Case("weight_split", "", [AWAKE, SQUASHED]),
    (
        "chance, and queries taken for keys, where a function that compares two paths is left to "
        "chance as well"
    ): Case(
        "sdpa_equivalence",
        "qkv_order dropout_always_on",
        [GATED, ("q, k, v = ", "k, q, v = ")],
        origin="solution",
    ),
    # What remembers earlier calls.
    "a module that goes on from what it saw last": Case(
        "kv_cache", "", KEEPS, hidden="cache_shared"
    ),
    "a module that goes on from what it saw last, and scores that are not scaled": Case(
        "kv_cache", "scale_missing", [*KEEPS, (" / math.sqrt(q.size(-1))", "")]
    ),
}


@pytest.mark.parametrize("case", [pytest.param(case, id=title) for title, case in CASES.items()])
def test_it_is_named_at_home_and_graded(sides: Sides, case: Case) -> None:
    graded, home = sides.both_results(case.exercise, case.text(sides.exercise(case.exercise)))
    assert side_differences(graded, home) == []
    assert (names(home), names(graded)) == (
        case.named.split(),
        [*case.named.split(), *case.hidden.split()],
    )
    if case.states:
        assert [function.state for function in home.functions] == case.states.split()
    assert home.functions[0].evidence.startswith(case.tells)
    assert {
        misconception.id: misconception.function for misconception in home.diagnosis if case.places
    } == case.places


MUTANTS = 3  # of each exercise; the golden names have every twelfth
EXERCISES = load_course(REPOSITORY).exercises


def sample(exercise: Exercise) -> Iterator[SampledAttempt]:
    """Some attempts of each kind, which both sides tell alike but for what a hidden check shows by
    itself.
    """
    bank = load_bank(exercise)
    step = len(bank.mutants) // MUTANTS
    mutants = [
        SampledAttempt("mutant", m.id, text_of(exercise, m))
        for m in bank.mutants[step // 2 :: step]
    ]
    texts = (text_of_pair(exercise, bank, *pair) for pair in pairs_of(bank))
    pair = SampledAttempt("pair", "", next(filter(None, texts)))
    wrong_attempts = [
        SampledAttempt("wrong", path.stem, path.read_text("utf-8"))
        for path in exercise.wrong_attempts()[:1]
    ]
    yield from chain(
        mutants, [pair], wrong_attempts, islice(unfinished_attempts(exercise, mutants[0]), 1)
    )


@pytest.mark.parametrize(
    "exercise", [pytest.param(exercise, id=exercise.id) for exercise in EXERCISES]
)
def test_both_say_the_same(sides: Sides, exercise: Exercise) -> None:
    checks = "".join(path.read_text("utf-8") for path in with_neighbours(exercise.checks))
    for attempt in sample(exercise):
        graded, home = sides.both_results(exercise.id, attempt.text)
        if attempt.category == "pair" and not names(home):
            continue  # grading makes pairs that no recording has
        assert (attempt, side_differences(graded, home)) == (attempt, [])
        alone = () if home.is_done else names(graded)[len(names(home)) :]
        assert (attempt, [name for name in alone if f'"{name}"' not in checks]) == (attempt, [])
