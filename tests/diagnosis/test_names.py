"""Each wrong attempt gets the expected misconceptions from `course check` and `course grade`.

An attempt is the reference solution, or another person's solution (called "the other" below), with
some texts replaced. The cases are ordered by exercise, because the first attempt at an exercise
takes as long as five others.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pytest

from bench.names import SampledAttempt, pairs_of, text_of, text_of_pair, unfinished_attempts
from manyheads.course import Exercise, load_course
from manyheads.course.model import with_neighbours
from manyheads.diagnosis import load_bank
from manyheads.diagnosis.recording_file import read
from tests.diagnosis.both_sides import Sides, named_misconceptions, side_differences
from tests.make import REPOSITORY, edit_text

ATTEMPTS = Path(__file__).parent / "attempts"
OTHER = "other"


class Case(NamedTuple):
    """An attempt, and the expected results.

    Attributes:
        named: The misconceptions, in order. Acceptable alternatives follow after a "|".
        changes: Texts of the base, and their replacements.
        base: The reference if empty; another person's code (a file in `attempts`) if OTHER;
            or a file of the repository.
        unwritten: Functions or methods without a body.
        hidden: Further misconceptions that only a hidden check proves, so that only grading names.
        also: Misconceptions that are present but do not cause the wrong values; None: not compared.
        states: The state of each function; empty: not compared.
        title: A part of the title of the first misconception.
        evidence: A pattern for lines "function: evidence". LINE stands for the number of the line
            where the changes begin.
        functions: The function of each misconception; empty: not compared.
        correct: Whether the attempt has all points.
    """

    named: str = ""
    changes: Mapping[str, str] = {}
    base: str = ""
    unwritten: Sequence[str] = ()
    hidden: str = ""
    also: str | None = None
    states: str = ""
    title: str = ""
    evidence: str = ""
    functions: str = ""
    correct: bool = False

    def text(self, exercise: Exercise) -> str:
        """Return the attempt's text."""
        path = exercise.solution
        if self.base == OTHER:
            path = ATTEMPTS / f"{exercise.id}.py"
        elif self.base:
            path = REPOSITORY / self.base
        text = edit_text(path.read_text(encoding="utf-8"), *self.changes.items())
        return remove_bodies(text, self.unwritten) if self.unwritten else text


def remove_bodies(text: str, names: Sequence[str]) -> str:
    """Return the text with the bodies of these functions replaced by NotImplementedError."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in names:
            node.body = ast.parse("raise NotImplementedError").body
    return ast.unparse([statement for statement in tree.body if not isinstance(statement, ast.If)])


# Texts and changes of the reference running_mean, in the tiny course.
GUARD = {
    (
        "    if x.numel() == 0:\n"
        '        raise ValueError("x has 0 numbers; at least 1 is needed")\n'
    ): ""
}
MEAN = "return x.cumsum(0) / torch.arange(1, len(x) + 1, dtype=x.dtype, device=x.device)"
SUM = {MEAN: "return x.cumsum(0)"}
# Texts and changes of the other attention_scores.
SCORES = "return q @ k.mT / math.sqrt(q.shape[-1])"
TURNED = {"def attention_scores(q, k)": "def attention_scores(k, q)"}
UNSCALED = {" / math.sqrt(q.shape[-1])": ""}  # also used for the other weight_split
# Texts and changes of the reference attention_scores.
DETACHED = {
    "return torch.softmax(scores, dim=-1)": (
        "return (scores - scores.logsumexp(-1, keepdim=True).detach()).exp()"
    )
}
FLOAT32 = {"return torch.softmax(scores, dim=-1)": "return torch.softmax(scores.float(), dim=-1)"}
# Texts and changes of the other causal_mask; {} stands for the mask.
FILL, ADD = "scores.masked_fill(~{}, -5.55)", "scores + ~{} * -27.3"
INFINITE = "scores.masked_fill(~{}, -torch.inf)"
# Texts and changes of the reference causal_mask.
FILLED = 'scores.masked_fill(~mask, float("-inf"))'
MASKED = "torch.softmax(mask_scores(scores, mask), dim=-1)"
REVERSED = {
    "torch.ones(T, T, dtype=torch.bool, device=device).tril()": "torch.ones(T, T).triu(1).bool()"
}
TWO_MASKS = {
    "device=device).tril()": "device=device).tril(-1)",
    "masked_fill(~mask": "masked_fill(mask",
}
# Texts and changes of the reference self_attention.
DROPPED = "self.dropout(torch.softmax(scores, dim=-1))"
UNLISTED = {"torch.softmax(scores, dim=-1)": "torch.softmax(scores.clamp(max=0.3), dim=-1)"}
KEPT_MASKS = {
    'self.register_buffer("mask", mask)': "self.masks = {}",
    "T = x.shape[1]\n": (
        "T = x.shape[1]\n        self.masks.setdefault(T, torch.ones(T, T, dtype=torch.bool, "
        "device=x.device).tril())\n"
    ),
}
# Texts and changes of the reference reshape_dance.
VIEW, SWAPPED = "x = x.view(B, T, n_head, C // n_head)", "return x.transpose(1, 2)"
SPLIT = (
    "    hd = x.shape[-1] // n_head\n    return torch.stack(x.split(hd, dim=-1)[:n_head], dim=1)"
)
# Texts and changes of the other weight_split.
QUERIES = {"softmax(-1)": "softmax(-2)"}
UNMERGED = {"y.transpose(1, 2).flatten(2)": "y.reshape(len(x), T, -1)"}
SQUASHED = {" @ v": " @ v.tanh()"}
UNCHECKED = {"if T > self.context:": "if False:"}
AWAKE = {"self.p, self.training)": "self.p)"}
THREE_LAYERS = "bias=qkv_bias) for _ in range(3))"
# Texts and changes of the reference mha_by_loop.
MINUS_INFINITY = "scores = scores.masked_fill(~visible, -math.inf)"
CUT_OFF = {"mha.qkv.weight": "mha.qkv.weight.data"}  # of the other solution
# Texts and changes of the reference fused_qkv.
THREE = "q, k, v = self.qkv(x).split(C, dim=-1)"
MERGED = "y.transpose(1, 2).reshape(B, T, C)"
DROPPED_WEIGHTS = "self.attn_dropout(scores.softmax(dim=-1))"
FUTURE = "torch.ones(T, T, device=x.device).triu(1).nonzero(as_tuple=True)"
# Texts and changes of the reference sdpa_equivalence.
BIASED = {"3 * n_embd, bias=False)": "3 * n_embd)"}  # of the other solution
GATED = {"self.dropout if self.training else 0.0": "self.dropout"}
MEASURED = {"(fast - by_hand).abs().max()": "(fast - by_hand).abs().mean()"}
WITHOUT_SIGN = {"(fast - by_hand).abs().max()": "(fast - by_hand).max()"}
WITHOUT_LIMIT = {"if self.block_size < T:": "if False:"}
ACCEPTED = (
    r"\A\w+: this should be refused, and is accepted in silence: "
    "raise a ValueError that names the numbers"
)
# Texts and changes of the reference grouped_query_attention.
REPEATED_KEYS, REPEATED_VALUES = (
    f"{name} = {name}.repeat_interleave(group, dim=1)" for name in "kv"
)
AVERAGED_VALUES = {
    REPEATED_VALUES: "v = v.mean(1, keepdim=True).repeat_interleave(self.n_head, dim=1)"
}
# Texts and changes of the reference kv_cache.
RETURNED = "return self.proj(y), (k, v)"
HEADS_APART = "each.view(B, T, self.n_head, -1)"  # of the other solution
LAST = {  # of the other solution
    "        B, T, C = x.shape\n": (
        "        B, T, C = x.shape\n        cache = self.last if cache is None else cache\n"
    ),
    "        self.n_head, self": "        self.last = None\n        self.n_head, self",
    'S = {"k": k, "v": v}, k.size(1)': (
        'S = {"k": k, "v": v}, k.size(1)\n        self.last = cache'
    ),
}


def mean_case(body: str, named: str = "", changes: Mapping[str, str] = {}) -> Case:
    """Return a case: running_mean with this body, and the expected misconceptions."""
    return Case(named, {MEAN: body, **changes})


def scores_case(body: str, named: str = "hard_coded_shape") -> Case:
    """Return a case: the other attention_scores with this body."""
    return Case(named, {SCORES: body}, OTHER)


def split_case(body: str, named: str = "hard_coded_shape") -> Case:
    """Return a case: the other split_heads with this body."""
    return Case(named, {SPLIT: f"    {body}"}, OTHER)


def fill_case(scores: str, weights: str) -> Case:
    """Return a case: the other causal_mask with these fills in its last two functions.

    scores, weights: templates of an expression; {} stands for the mask.
    """
    visible = "causal_mask(scores.shape[-1], scores.device)"
    return Case(
        "mask_weak_fill",
        {
            INFINITE.format("mask"): scores.format("mask"),
            "mask_scores(scores, torch.ones_like(scores).tril().bool())": (
                f"({weights.format(visible)})"
            ),
        },
        OTHER,
    )


def cache_case(cache: str, axis: int) -> Case:
    """Return a case: the other kv_cache with a cache of this shape, joined along this axis."""
    changes = {HEADS_APART: cache, "dim=1)": f"dim={axis})"}
    return Case("cache_wrong_axis" if axis != 1 else "", changes, OTHER, correct=axis == 1)


CASES: dict[str, dict[str, Case]] = {
    "running_mean": {
        "nothing is wrong": Case(correct=True),
        "a mistake that changes values": Case("sum_not_mean", SUM),
        "a missing refusal": Case("empty_unchecked", GUARD),
        "wrong values and a missing refusal": Case("sum_not_mean empty_unchecked", SUM | GUARD),
        "two mistakes that change values": mean_case(
            "return x.sum().expand_as(x) / len(x)", "counts_all sees_future"
        ),
        "a wrong gradient and right values": mean_case(
            "return x.detach().cumsum(0) / x.new_ones(len(x)).cumsum(0)", "gradient_cut"
        ),
        "wrong values that no mutant has": mean_case(
            "return (x.cumsum(0) / x.new_ones(len(x)).cumsum(0)) ** 2"
        ),
        "a wrong shape that no mutant has": mean_case("return x[1:].cumsum(0)"),
        "an output of constant size": mean_case(
            "return (x.cumsum(0) / x.new_ones(len(x)).cumsum(0))[:5]", "hard_coded_shape"
        ),
        "refusing every input is not an untouched stub": mean_case("raise ValueError('no')"),
        "an error about a missing device is not a refusal": mean_case(
            "raise AssertionError('Torch not compiled with CUDA enabled')",
            "hard_coded_device",
            GUARD,
        ),
        "wrong values, and another exception type for the refusal": mean_case(
            "x[0]\n    return x.cumsum(0)", "sum_not_mean", GUARD
        ),
        "nothing written yet": mean_case("raise NotImplementedError()", "stub_untouched", GUARD),
        "an exception that identifies the mistake": mean_case(
            "return x.unfold(0, 2, 1).T.view(-1)", "view_not_contiguous"
        ),
        "an exception that identifies no mistake": mean_case("return undefined"),
        "a TypeError inside the function is not a wrong interface": mean_case(
            "return torch.cumsum(x, nonsense=0)"
        ),
        "a function of another name": Case("interface", {"def running_mean": "def another"}),
    },
    "attention_scores": {
        "nothing is wrong": Case(base=OTHER, correct=True),
        "numbers may go to the CPU and back": Case(
            changes={"@ v  #": "@ v.cpu().to(v.device)  #"}, correct=True
        ),
        "numbers may be printed": Case(
            changes={
                "return attention_weights(": "print(q.tolist())\n    return attention_weights("
            },
            correct=True,
        ),
        "a renamed argument and a wrong axis": Case(
            "interface softmax_query_axis",
            {
                "attention(x):\n    return (x @ x.mT).softmax(-1) @ x": (
                    "attention(t):\n    return (t @ t.mT).softmax(-2) @ t"
                )
            },
            OTHER,
        ),
        "numbers that no mutant has": Case("", {"@ x.mT).": "@ x.mT).exp()."}, OTHER),
        "keys for queries": Case(
            "scores_wrong_source",
            {"attention_scores(q, k)) @": "attention_scores(k, k)) @"},
            OTHER,
        ),
        "two axes": scores_case(f"T, hd = q.shape\n    {SCORES}"),
        "three axes": scores_case(f"B, T, hd = q.shape\n    {SCORES}"),
        "four axes": scores_case(f"B, nh, T, hd = q.shape\n    {SCORES}"),
        "three axes at least": scores_case(f"q.transpose(0, -3)\n    {SCORES}"),
        "an additional axis for inputs of two axes": scores_case(
            f"{SCORES}[None] if q.dim() < 3 else {SCORES[7:]}"
        ),
        "at least three axes, and numbers that no mutant has": scores_case(
            f"q.transpose(0, -3)\n    {SCORES}.tanh()", ""
        ),
        "a refusal of more axes than two": scores_case(
            f"if q.dim() > 2: raise ValueError(q.shape)\n    {SCORES}", "refuses_allowed"
        ),
        "exchanged arguments": Case("interface qkv_order", TURNED, OTHER),
        "exchanged arguments and wrong values": Case(
            "scale_missing qkv_order", TURNED | UNSCALED, OTHER
        ),
        "a scale of 0.0371": scores_case("return q @ k.mT * 0.0371", "scale_constant"),
        "a scale of 1.7": scores_case("return q @ k.mT * 1.7", "scale_constant"),
        "a scale of 41.3": scores_case("return q @ k.mT * 41.3", "scale_constant"),
        "a maximum is not a large scale": Case(
            "",
            {
                "scores.softmax(-1)": (
                    "torch.nn.functional.one_hot(scores.argmax(-1), scores.shape[-1]).to(scores)"
                ),
                "import math": "import math, torch",
            },
            OTHER,
        ),
        "a cut gradient that no mutant has": Case(
            "gradient_cut", {"k)) @ v": "k)).detach() @ v"}, OTHER
        ),
        "an exception in every call names no size": Case(
            "", {"k.transpose(-2, -1)": "k.transpose(-2, -3)"}
        ),
        "at least one leading axis is required": Case(
            "hard_coded_shape",
            {
                "q @ k.transpose(-2, -1) / math": (
                    "torch.einsum('b...qc,b...kc->b...qk', q, k) / math"
                )
            },
        ),
        "sizes of one call": Case(
            "hard_coded_shape",
            {"return q @": "q, k = q.view(2, 10, -1), k.view(2, 10, -1)\n    return q @"},
        ),
        "exchanged arguments of the last function": Case(
            "interface",
            {"q: torch.Tensor, k: torch.Tensor, v:": "q: torch.Tensor, v: torch.Tensor, k:"},
            evidence=r"attend: .*written as attend\(q, v, k\), and called as attend\(q, k, v\)",
        ),
        "one argument is moved to the CPU": Case("hard_coded_device", {"@ v  #": "@ v.cpu()  #"}),
        "a root rounded to an integer": Case(
            "scale_rounded", {"math.sqrt(q.shape[-1])": "math.isqrt(q.shape[-1])"}
        ),
        "weights in float32 are attributed to one function": Case(
            "hard_coded_dtype", FLOAT32, states="right right wrong waiting"
        ),
        "`.T` of three axes": Case(
            "axes_turned",
            {"q @ k.transpose(-2, -1)": "q @ k.T", "x @ x.transpose(-2, -1)": "x @ x.T"},
        ),
        "an additional division": Case(
            "scale_not_due",
            {
                "torch.softmax(x @ x.transpose(-2, -1), dim=-1)": (
                    "attention_weights(attention_scores(x, x))"
                )
            },
        ),
        "a detached sum, and another function without a body": Case(
            "gradient_cut stub_untouched", DETACHED, unwritten=["simplified_attention"]
        ),
        "float32, and another function without a body": Case(
            "hard_coded_dtype stub_untouched", FLOAT32, unwritten=["simplified_attention"]
        ),
        "changing its own tensor in place is no mutation of an argument": Case(
            "",
            {"torch.softmax(scores, dim=-1)": "torch.softmax(scores, dim=-1).mul_(1.0)"},
            also="",
        ),
    },
    "causal_mask": {
        "additional axes are not a hard-coded size": Case(
            "interface", {"device).tril()": "device).tril()[None, None]"}, OTHER
        ),
        "an additional axis and wrong numbers": Case(
            "interface mask_not_bool", {"device).tril()": "device).tril().float()[None]"}, OTHER
        ),
        "a number filled in": fill_case(FILL, FILL),
        "a number filled in by mask_scores only": fill_case(FILL, INFINITE),
        "a number filled in by causal_weights only": fill_case(INFINITE, FILL),
        "a number added": fill_case(ADD, ADD),
        "a number added by mask_scores only": fill_case(ADD, INFINITE),
        "a number added by causal_weights only": fill_case(INFINITE, ADD),
        "one additional axis is not a hard-coded size": Case(
            "interface", {"device=device).tril()": "device=device).tril()[None]"}
        ),
        "wrong numbers and a mutated argument": Case(
            "input_mutated mask_reversed",
            {".tril()": ".triu()", "masked_fill(~mask": "masked_fill_(~mask"},
        ),
        "a fill three below the smallest score": Case(
            "mask_weak_fill", {FILLED: "scores.masked_fill(~mask, scores.min().item() - 3)"}
        ),
        "a mask of 16 tokens": Case(
            "mask_not_sliced|hard_coded_shape",
            {"causal_mask(scores.shape[-1], ": "causal_mask(16, "},
        ),
        "a mask of 20 tokens": Case(
            "hard_coded_shape", {"causal_mask(scores.shape[-1], ": "causal_mask(20, "}
        ),
        "a mask as large as the first axis": Case(
            "size_wrong_axis",
            {"causal_mask(scores.shape[-1], ": "causal_mask(scores.shape[0], "},
        ),
        "a mask of one and minus infinity": Case(
            "mask_added",
            {FILLED: 'scores + mask.to(scores).masked_fill(~mask, float("-inf"))'},
        ),
        # An exception that many mistakes end in names none.
        "a function that is not called": Case(
            "",
            {"mask_scores(scores, mask)": "mask_scores(scores, causal_mask)"},
            evidence=(
                r"causal_weights: .*`causal_mask`, written on line LINE, is not called there: "
                r"write causal_mask\(…\)\."
            ),
        ),
        "a reversed mask that stays on one device": Case(
            "mask_reversed hard_coded_device stub_untouched",
            REVERSED,
            unwritten=["causal_weights"],
        ),
        "a reversed mask that stays on one device, other functions unwritten": Case(
            "mask_reversed hard_coded_device stub_untouched",
            REVERSED,
            unwritten=["mask_scores", "causal_weights"],
        ),
        "two mistakes in two functions, and a third function wrong": Case(
            "mask_excludes_self mask_reversed", TWO_MASKS | {MASKED: "scores.cumsum(-1)"}
        ),
    },
    "self_attention": {
        "layers in a list": Case("params_not_registered", base=OTHER),
        "layers of another name": Case(
            "params_extra",
            {"= [nn.Linear": "= nn.ModuleList([nn.Linear", "range(3)]": "range(3)])"},
            OTHER,
        ),
        "layers created in each call": Case(
            "params_not_registered",
            {
                "nn.Linear(d_in, d_out, bias=qkv_bias)": "(d_in, d_out, qkv_bias)",
                "layer(x) for": "nn.Linear(*layer)(x) for",
            },
            OTHER,
        ),
        "a stored mask may move to the device of its input": Case(
            changes={**KEPT_MASKS, "~self.mask[:T, :T],": "~self.masks[T].to(x.device),"},
            correct=True,
        ),
        "all layers created in forward": Case(
            "",
            {
                "T = x.shape[1]": (
                    "T = x.shape[1]\n        for name in ('W_query', 'W_key', 'W_value'):\n"
                    "            old = getattr(self, name)\n"
                    "            new = nn.Linear(old.in_features, old.out_features, old.bias is "
                    "not None)\n            setattr(self, name, new.to(x))"
                )
            },
            hidden="params_not_registered",
        ),
        "the layer of the queries created in forward": Case(
            "",
            {"self.W_query(x),": "nn.Linear(x.shape[2], self.W_query.out_features).to(x)(x),"},
            hidden="params_not_registered",
        ),
        "two tied weights have no cut gradient": Case(
            "",
            {
                "self.dropout = nn.Dropout(dropout)": (
                    "self.dropout = nn.Dropout(dropout)\n"
                    "        self.W_key.weight = self.W_query.weight"
                )
            },
            hidden="params_not_registered",
            also="",
        ),
        "the output is on the CPU": Case(
            "hard_coded_device", {"return weights @ v": "return (weights @ v).cpu()"}
        ),
        "a mask is moved to the CPU": Case(
            "hard_coded_device", {"~self.mask[:T, :T]": "~self.mask[:T, :T].cpu()"}
        ),
        "a device that this machine lacks": Case(
            "hard_coded_device", {"T = x.shape[1]\n": "T = x.shape[1]\n        x = x.to('cuda')\n"}
        ),
        "a dropout rate fixed at 0.1": Case(
            "dropout_rate_fixed", {"nn.Dropout(dropout)": "nn.Dropout(0.1)"}
        ),
        "the default rate of the dropout function": Case(
            "dropout_rate_fixed",
            {DROPPED: "nn.functional.dropout(scores.softmax(-1), training=self.training)"},
        ),
        "a dropout with neither rate nor mode": Case(
            "dropout_always_on dropout_rate_fixed",
            {DROPPED: "nn.functional.dropout(scores.softmax(-1))"},
            also="",
        ),
        "no dropout": Case("dropout_missing", {DROPPED: "torch.softmax(scores, dim=-1)"}, also=""),
        "weights that are dropped in place": Case(
            "dropout_in_place", {"nn.Dropout(dropout)": "nn.Dropout(dropout, inplace=True)"}
        ),
        "the output is dropped, too": Case(
            "dropout_extra", {"return weights @ v": "return self.dropout(weights @ v)"}
        ),
        "noise is not dropout": Case(
            "", {"return weights @ v": "return weights @ v + torch.randn_like(v)"}
        ),
        "no dropout, and a mistake that no mutant has": Case(
            "",
            {DROPPED: "torch.softmax(scores.clamp(max=0.3), dim=-1)"},
            also="dropout_missing",
        ),
        "a cut gradient, and a mistake that no mutant has": Case(
            "", UNLISTED | {"weights @ v ": "weights @ v.detach() "}, also="gradient_cut"
        ),
        "an additional layer, and a mistake that no mutant has": Case(
            "",
            UNLISTED
            | {
                "        mask = torch.ones": (
                    "        self.more = nn.Linear(2, 2)\n        mask = torch.ones"
                )
            },
            also="params_extra",
        ),
        "the argument is scaled": Case(
            "input_mutated",
            {"        T = x.shape[1]": "        x *= 3\n        T = x.shape[1]"},
            also="",
        ),
        "a scale from the batch": Case(
            "scale_wrong_axis", {"math.sqrt(q.shape[-1])": "q.shape[0] ** 0.5"}
        ),
        "the root of the longest length": Case(
            "scale_sqrt_tokens", {"math.sqrt(q.shape[-1])": "math.sqrt(self.context_length)"}
        ),
        "a fill just below the smallest score": Case(
            "mask_weak_fill", {'float("-inf")': "scores.min() - 1"}
        ),
        "high scores for hidden tokens": Case("mask_high_fill", {'float("-inf")': "1e9"}),
        "a softmax by hand over the past without the token itself, and the scale": Case(
            "scale_no_sqrt|scale_tokens|scale_twice mask_excludes_self",
            {
                "torch.softmax(scores, dim=-1)": "mean / mean.sum(2, keepdim=True)",
                'scores = scores.masked_fill(~self.mask[:T, :T], float("-inf"))': (
                    "mean = (scores - scores.amax(2, keepdim=True)).exp() "
                    "* self.mask[:T, :T].tril(-1)"
                ),
                "math.sqrt(q.shape[-1])": "q.shape[-1]",
            },
        ),
        "the batch's softmax of an added mask": Case(
            "softmax_wrong_axis",
            {
                "softmax(scores, dim=-1)": "softmax(scores, dim=0)",
                'scores = scores.masked_fill(~self.mask[:T, :T], float("-inf"))': (
                    "scores = scores + torch.zeros(T, T, "
                    "device=x.device).masked_fill(~self.mask[:T, :T], -math.inf)"
                ),
            },
        ),
        "a length read from the wrong axis, and a guard that compares it": Case(
            "size_wrong_axis", {"x.shape[1]": "x.shape[0]"}
        ),
        "an unusual batch": Case(
            "hard_coded_shape", {"return weights @ v": "return (weights @ v).view(6, 9, -1)"}
        ),
        "a mask cut to 8 tokens": Case(
            "hard_coded_shape", {"~self.mask[:T, :T]": "~self.mask[:8, :8]"}
        ),
        "a dict of masks by length stays on its device": Case(
            "mask_not_moved", KEPT_MASKS | {"~self.mask[:T, :T],": "~self.masks[T],"}
        ),
        "a rounded output has no gradient": Case(
            "output_rounded", {"return weights @ v": "return (weights @ v).round(decimals=4)"}
        ),
        "refuses the longest allowed length": Case(
            "refuses_allowed", {"if self.context_length < T:": "if self.context_length <= T:"}
        ),
        "returning None is a wrong interface, not a cut gradient": Case(
            "interface", {"        T = x.shape[1]\n": "        return\n"}
        ),
        "an assertion about the queries": Case(
            "",
            {
                "scores = q @ k.transpose": (
                    "assert q.shape == (x.shape[0], T, 1)\n        scores = q @ k.transpose"
                )
            },
        ),
        "a single token does not identify the mistake": Case(
            base="grader/wrong/self_attention/dropout_on_values.py"
        ),
    },
    "reshape_dance": {
        "no transpose in the merge, and an odd width is not refused": Case(
            "merge_no_transpose divisibility_unchecked",
            {"y.transpose(1, 2).flatten(2)": "y.reshape(len(y), y.shape[2], -1)"},
            OTHER,
        ),
        "a size of one public call": split_case(
            "return x.view(len(x), 9, n_head, -1).transpose(1, 2)"
        ),
        "a batch of one public call": split_case(
            "return x.view(5, x.shape[1], n_head, -1).transpose(1, 2)"
        ),
        "a size of no call": split_case("return x.view(len(x), 20, n_head, -1).transpose(1, 2)"),
        "a size of no call, and wrong values": split_case(
            "return x.view(len(x), 20, n_head, -1).transpose(1, 2) * 2"
        ),
        "refusing every input names no size": split_case("raise ValueError('not for 20')", ""),
        "batch size and sequence length exchanged": split_case(
            "return x.view(x.shape[1], len(x), n_head, -1).transpose(1, 2)", ""
        ),
        "a hard-coded size in the attempt's own refusal": Case(
            "hard_coded_shape", {"B, T, C = x.shape": "B, T, C = x.shape\n    C = 768"}
        ),
        "11 heads": Case(
            "hard_coded_shape",
            {
                "return y.transpose": (
                    "y = torch.stack([y[:, h] for h in range(11)], 1)\n    return y.transpose"
                )
            },
        ),
        "a product in place of a quotient": Case("", {"C // n_head": "C * n_head"}),
        "sizes read after the transpose": Case(
            "size_wrong_axis",
            {
                "B, nh, T, hd = y.shape\n    return y.transpose(1, 2)": (
                    "y = y.transpose(1, 2)\n    B, nh, T, hd = y.shape\n    return y"
                )
            },
        ),
        "a guard with an inverted condition": Case(
            "refuses_allowed", {"if C % n_head != 0": "if C % n_head == 0"}
        ),
        "an assert of a tuple refuses nothing": Case(
            "divisibility_unchecked",
            {"if C % n_head != 0:": "assert (C % n_head == 0, 'does not divide')\n    if False:"},
            evidence="split_heads: .*The assert on line LINE refuses nothing",
        ),
        "the remainder of the width is cut off": Case(
            "divisibility_unchecked stub_untouched",
            {
                'raise ValueError(f"{C}': (
                    "return x.new_empty(B, n_head, T, 4).copy_(x[..., :C - C % n_head]"
                    '.view(B, T, n_head, -1).transpose(1, 2)) or str(f"{C}'
                )
            },
            unwritten=["merge_heads"],
        ),
        "one half of a mistake in both functions": Case(
            "merge_no_transpose|wrong_view_both|heads_missing_transpose stub_untouched",
            {"y.transpose(1, 2).contiguous()": "y.contiguous()"},
            unwritten=["split_heads"],
        ),
        "heads reversed by the split": Case(
            "heads_reversed",
            {SWAPPED: f"{SWAPPED}.flip(1)"},
            title="after the split, in the merge, or in both",
        ),
        "swapped, then reshaped": Case(
            "reshape_out_of_order",
            {VIEW: "", SWAPPED: "return x.transpose(1, 2).reshape(B, n_head, T, C // n_head)"},
            title="another order than the one in which the numbers lie",
        ),
    },
    "weight_split": {
        "nothing is wrong": Case(base=OTHER, correct=True),
        "two mistakes that change the same numbers": Case(
            "softmax_query_axis merge_no_transpose", QUERIES | UNMERGED, OTHER
        ),
        "two mistakes, one seen only with a single head": Case(
            "scale_missing merge_no_transpose", UNSCALED | UNMERGED, OTHER
        ),
        "a known mistake and one that no mutant has": Case("", QUERIES | SQUASHED, OTHER),
        "an unchecked context length and unscaled scores": Case(
            "scale_missing context_unchecked", UNCHECKED | UNSCALED, OTHER
        ),
        "an unchecked context length, and a mistake that no mutant has": Case(
            "", UNCHECKED | SQUASHED, OTHER
        ),
        "replies that one mistake explains do not prove a second": Case(
            "scale_missing",
            UNSCALED | {" @ v": " @ (v if self.training else (1 - self.p) * v)"},
            OTHER,
            hidden="dropout_always_on",
        ),
        "a module that always raises has no hard-coded number of axes": Case(
            "", {"self.out_proj(y": "self.p(y"}, OTHER
        ),
        "a scale of 0.3": Case("scale_constant", {"/ math.sqrt(q.shape[-1])": "* 0.3"}, OTHER),
        "a scale by twice the width is not a constant": Case(
            "", {"/ math.sqrt(q.shape[-1])": "/ math.sqrt(2 * q.shape[-1])"}, OTHER
        ),
        "heads that are averaged, where the projection raises": Case(
            "heads_one_width|heads_averaged",
            {"y.transpose(1, 2).flatten(2)": "y.mean(1)"},
            OTHER,
        ),
        "another exception type for the refusal": Case(
            "divisibility_unchecked", {'raise ValueError(f"{d': 'raise OSError(f"{d'}, OTHER
        ),
        "additional parameters": Case(
            "params_extra",
            {THREE_LAYERS: f"{THREE_LAYERS}\n        self.more = nn.LayerNorm(d_in)"},
            OTHER,
        ),
        "a parameter of the mask's shape": Case(
            "mask_is_parameter",
            {
                THREE_LAYERS: (
                    f"{THREE_LAYERS}\n"
                    "        self.more = nn.Linear(context_length, context_length, bias=False)"
                )
            },
            OTHER,
        ),
        # no `.to` reaches the heads, so that dtypes and devices differ, too: that only follows
        "heads in a list come first": Case(
            "params_not_registered",
            base="tests/diagnosis/attempts/heads_in_a_list.py",
            hidden="divisibility_unchecked",
        ),
        "a dropout that ignores eval mode": Case("dropout_always_on", AWAKE, OTHER),
        "a dropout in every mode, and unscaled scores": Case(
            "scale_missing dropout_always_on", AWAKE | UNSCALED, OTHER
        ),
        "a dropout in every mode, and a mistake that no mutant has": Case(
            "", AWAKE | SQUASHED, OTHER
        ),
        "multiplication by noise": Case(
            "", {"self.out_proj(y": "(1 + torch.rand(()) / 9) * self.out_proj(y"}, OTHER
        ),
        "a softmax over batch and heads": Case(
            "softmax_wrong_axis",
            {"scores.softmax(dim=-1)": "scores.flatten(0, 1).softmax(0).view_as(scores)"},
        ),
        "weights that do not depend on the scores": Case(
            "scores_ignored",
            {
                "scores.softmax(": (
                    "(scores * 0).masked_fill(self.future[:T, :T], float('-inf')).softmax("
                )
            },
        ),
        "weights averaged over heads": Case(
            "heads_share_weights",
            {"(weights @ v)": "(weights.mean(1, keepdim=True) @ v)"},
            title="one table of weights",
        ),
        "number and width of heads exchanged": Case(
            "heads_and_width_swapped",
            {
                "self.num_heads, self.head_dim).transpose(1, 2)": (
                    "self.head_dim, self.num_heads).transpose(1, 2)"
                )
            },
        ),
        "6 heads": Case(
            "hard_coded_shape",
            {
                "d_out // num_heads": "d_out // 6",
                "self.num_heads = num_heads": "self.num_heads = 6",
            },
        ),
        "a size read from the wrong axis fails in a guard or in a view": Case(
            "", {"B, T, _ = x.shape": "B, _, T = x.shape"}
        ),
        "an inverted limit": Case(
            "refuses_allowed", {"if self.context_length < T:": "if self.context_length > T:"}
        ),
        "the wrong width is checked": Case(
            "refuses_allowed", {"if d_out % num_heads != 0": "if d_in % num_heads != 0"}
        ),
        "a norm without parameters": Case(
            "",
            {
                "return self.out_proj(context)": (
                    "return nn.functional.layer_norm(self.out_proj(context), "
                    "(self.out_proj.out_features,))"
                )
            },
        ),
        "out_proj hidden in a list": Case(
            "params_not_registered",
            {
                "self.out_proj = nn.Linear(d_out, d_out)": "self.parts = [nn.Linear(d_out, d_out)]",
                "self.out_proj(context)": "self.parts[0](context)",
                "    def forward(": (
                    "    out_proj = property(lambda self: self.parts[0])\n\n    def forward("
                ),
            },
        ),
        "the output projection created in forward": Case(
            "params_not_registered",
            {"self.out_proj(context)": "nn.Linear(*[context.shape[-1]] * 2).to(x)(context)"},
        ),
        "a bias for each head": Case(
            "proj_bias",
            {
                "return self.out_proj(context)": (
                    "return sum(nn.functional.linear(c, w, self.out_proj.bias) for c, w in "
                    "zip(context.chunk(self.num_heads, 2), "
                    "self.out_proj.weight.chunk(self.num_heads, 1)))"
                )
            },
        ),
        "mixed sequences, which is not dropout, and a bias": Case(
            "merge_wrong_axes proj_bias",
            {
                "(weights @ v).transpose(1, 2)": "(weights @ v).permute(1, 2, 0, 3)",
                "bias=qkv_bias": "bias=True",
            },
        ),
        "untransposed weights by einsum, with an exception of einsum": Case(
            "weight_not_transposed",
            {
                "self.W_query(x), self.W_key(x), self.W_value(x)": (
                    "(torch.einsum('nti,io->nto', x, w.weight) + (0 if w.bias is None else "
                    "w.bias) for w in (self.W_query, self.W_key, self.W_value))"
                )
            },
        ),
        "dropout of the queries, invisible for one token": Case(
            base="grader/wrong/weight_split/dropout_on_queries.py"
        ),
        "dropout of the values, with a single head": Case(
            base="grader/wrong/weight_split/dropout_on_values.py"
        ),
    },
    "mha_by_loop": {
        "nothing is wrong": Case(base=OTHER, correct=True),
        "a mask of a size of no axis": Case("hard_coded_shape", {"T, T": "32, 32"}, OTHER),
        "a mask of a size of no axis, and large": Case(
            "hard_coded_shape", {"T, T": "1024, 1024"}, OTHER
        ),
        "a mask of the size of another axis, which three mistakes may have": Case(
            "", {"T, T": "mha.head_dim, mha.head_dim"}, OTHER
        ),
        "heads of a number that leaves a rest": Case(
            "hard_coded_shape",
            {"arange(C).split(mha.head_dim)": "arange(C // 8 * 8).split(C // 8)"},
            OTHER,
        ),
        "rows that are dealt to q, k and v by turns": Case(
            "qkv_packed_per_head|qkv_sliced_by_columns",
            {"mha.qkv.weight.split(C)": "(mha.qkv.weight[i::3] for i in range(3))"},
            OTHER,
        ),
        "one head's rows in every round": Case(
            "heads_one_for_all", {"W[rows]": "W[:mha.head_dim]"}, OTHER
        ),
        "one head's answer, repeated": Case(
            "heads_one_for_all",
            {"torch.cat(heads, dim=-1)": "heads[-1].repeat(1, 1, len(heads))"},
            OTHER,
        ),
        "heads that are joined along the batch": Case(
            "merge_no_transpose", {"heads, dim=-1": "heads, dim=0"}, OTHER
        ),
        "one of several layers without a gradient": Case("gradient_cut", CUT_OFF, OTHER),
        "all layers, by hand, which only a layer of torch's own may copy": Case(
            "gradient_cut",
            {
                **CUT_OFF,
                "mha.proj(torch.cat(heads, dim=-1))": (
                    "torch.cat(heads, dim=-1) @ mha.proj.weight.data.mT"
                ),
            },
            OTHER,
        ),
        "16 tokens": Case(
            "hard_coded_shape",
            {"T, C, hd = x.shape[1],": "x = x.view(2, 16, -1)\n    T, C, hd = x.shape[1],"},
        ),
        "any scale": Case("scale_constant", {"math.sqrt(hd)": "3.3"}),
        "heads cut anew along the batch": Case(
            "heads_mix_batch",
            {
                "torch.cat(heads, dim=-1)": (
                    "torch.cat(list(torch.stack(heads, dim=1).reshape(mha.n_head, *x.shape[:2], "
                    "mha.head_dim)), dim=-1)"
                )
            },
        ),
        "a return inside the loop": Case(
            "heads_one_width|heads_averaged",
            {"    return mha.proj": "        return mha.proj"},
            title="Only head_dim channels",
        ),
        "a list made inside the loop": Case(
            "heads_one_width|heads_averaged",
            {"for h in range(mha.n_head):": "for h in range(mha.n_head):\n        heads = []"},
            title="Only head_dim channels",
        ),
        "no gradient reaches any weight": Case(
            "gradient_cut",
            {
                "mha.qkv.weight.split(": "mha.qkv.weight.detach().split(",
                "mha.proj(": "nn.functional.linear(weight=mha.proj.weight.detach(), input=",
            },
        ),
        "the values' gradient is lost on the way to x": Case(
            "gradient_cut", {"x @ w_v[own]": "x.detach() @ w_v[own]"}
        ),
        "the values' gradient is lost, and the scale is wrong": Case(
            "",
            {"x @ w_v[own]": "x.detach() @ w_v[own]", "math.sqrt(hd)": "hd"},
            hidden="scale_no_sqrt|scale_twice gradient_cut",
        ),
        "writing into the weights cuts no gradient": Case(
            "input_mutated",
            {
                "    heads = []": "    w_q.data.div_(math.sqrt(hd))\n    heads = []",
                "/ math.sqrt(hd)": "* 1",
            },
        ),
        "x is moved to the CPU in a loop": Case(
            "hard_coded_device", {"range(mha.n_head):": "range(mha.n_head):\n        x = x.cpu()"}
        ),
        "an output that is projected twice": Case(
            "proj_twice",
            {"mha.proj(torch.cat(heads, dim=-1))": "mha.proj(mha.proj(torch.cat(heads, dim=-1)))"},
        ),
        "a small number is subtracted in place of minus infinity": Case(
            "mask_weak_fill", {MINUS_INFINITY: "scores = scores - 5.0 * (~visible).to(x.dtype)"}
        ),
        "a small number is subtracted, and the rows are read per head": Case(
            "qkv_packed_per_head mask_weak_fill",
            {
                MINUS_INFINITY: "scores = scores - 10 * (~visible).to(x.dtype)",
                "mha.qkv.weight.split(C, dim=0)": (
                    "mha.qkv.weight.view(mha.n_head, 3, hd, C).transpose(0, 1).reshape(3, C, C)"
                ),
            },
        ),
        "a layer in place of its weight": Case(
            "layer_not_called", {"mha.qkv.weight.split(C, dim=0)": "mha.qkv.split(C, dim=0)"}
        ),
        "rows of a head as they are stored": Case(
            "weight_not_transposed",
            {"x @ w_q[own].T, x @ w_k[own].T": "x @ w_q[own], x @ w_k[own]"},
        ),
    },
    "fused_qkv": {
        "a rate that is a size of the call, and a number of the text": Case(
            "", {"nn.Dropout(dropout)": "nn.Dropout(block_size)"}
        ),
        "a fill of -1.3": Case("mask_weak_fill", {"T], -math.inf": "T], -1.3"}),
        "a logarithm of the width is no number, where a function is asked for one width": Case(
            "", {"math.sqrt(self.head_dim)": "math.log(self.head_dim)"}
        ),
        "half of the scale, which a wrong view imitates there": Case(
            "", {"math.sqrt(self.head_dim)": "(2 * math.sqrt(self.head_dim))"}
        ),
        "scores divided with two slashes": Case(
            "scale_rounded", {"/ math.sqrt(self.head_dim)": "// math.sqrt(self.head_dim)"}
        ),
        "the number of heads without a root": Case(
            "scale_heads", {"/ math.sqrt(self.head_dim)": "/ self.n_head"}
        ),
        "the full width without a root": Case("scale_c", {"/ math.sqrt(self.head_dim)": "/ C"}),
        "multiplied by the full width": Case(
            "scale_multiplied", {"/ math.sqrt(self.head_dim)": "* C"}
        ),
        "values in the keys' place": Case(
            "scores_wrong_source",
            {"scores = q @ k.transpose(-2, -1)": "scores = q @ v.transpose(-2, -1)"},
            title="compare something other than queries with keys",
        ),
        "heads of values turned round": Case(
            "heads_mismatched",
            {
                "v = v.view(B, T, self.n_head, self.head_dim).transpose(1, 2)": (
                    "v = v.view(B, T, self.n_head, self.head_dim).transpose(1, 2).flip(1)"
                )
            },
            title="do not stand in the same order",
        ),
        "the mean of heads with all values": Case(
            "heads_share_weights",
            {
                "y = weights @ v": "y = (weights @ v.transpose(1, 2).reshape(B, 1, T, C)).mean(1)",
                f"y = {MERGED}": "pass",
            },
        ),
        "rows read per head, and a merge without its transpose": Case(
            "merge_no_transpose qkv_packed_per_head",
            {
                THREE: "q, k, v = self.qkv(x).view(B, T, self.n_head, -1).chunk(3, dim=-1)",
                MERGED: "y.reshape(B, T, C)",
            },
        ),
        "sequences mixed up, and no dropout": Case(
            "heads_mix_batch dropout_missing|dropout_before_softmax",
            {
                MERGED: "y.reshape(self.n_head, B, T, -1).permute(1, 2, 0, 3).reshape(B, T, C)",
                "self.attn_dropout(": "(",
                "self.resid_dropout(": "(",
            },
        ),
        "q, k and v from the batch's axis": Case(
            "qkv_mix_batch",
            {
                THREE: (
                    "z = self.qkv(x).view(B, T, 3, self.n_head, self.head_dim).permute(0, 2, 3, "
                    "1, 4)\n        q, k, v = (t.transpose(1, 2) for t in z.reshape(3, B, "
                    "self.n_head, T, -1))"
                )
            },
        ),
        "the fused weight turned before it is cut": Case(
            "qkv_sliced_by_columns",
            {THREE: "q, k, v = (x @ part.T for part in self.qkv.weight.T.reshape(3, C, C))"},
        ),
        "three mistakes in one layer": Case(
            "scale_sqrt_c mask_missing dropout_before_softmax|dropout_on_output_only",
            {
                "scores = scores.masked_fill(": "scores.masked_fill(",
                "math.sqrt(self.head_dim)": "math.sqrt(C)",
                DROPPED_WEIGHTS: "scores.softmax(dim=-1)",
            },
        ),
        "values that no score weighs are no pair of two mistakes": Case(
            "", {DROPPED_WEIGHTS: "torch.tanh(scores)"}
        ),
        "a row that sees no token becomes zeros": Case(
            "mask_excludes_self",
            {
                "~self.visible[:T, :T]": "~self.visible[:T, :T].tril(-1)",
                "dim=-1))": "dim=-1).nan_to_num())",
            },
        ),
        "a whole mask that fits no shorter sequence, not even one of a single token": Case(
            "mask_not_sliced",
            {
                "scores.masked_fill(~self.visible[:T, :T], -math.inf)": (
                    "torch.where(self.visible.expand_as(scores), scores, -math.inf)"
                )
            },
        ),
        "a mask cut in one direction, by einsum, which stretches a single token": Case(
            "mask_not_sliced",
            {
                "~self.visible[:T, :T], -math.inf": "~self.visible[:T], torch.finfo(x.dtype).min",
                "y = weights @ v": "y = torch.einsum('bhij, bhjd -> bhid', weights, v)",
            },
        ),
        "a mask as large as the batch": Case(
            "size_wrong_axis", {"~self.visible[:T, :T]": "~self.visible[:B, :B]"}
        ),
        "heads of 24 channels": Case("hard_coded_shape", {"self.head_dim)": "24)"}),
        "a dropout of the output of 0.2": Case(
            "dropout_rate_fixed",
            {"resid_dropout = nn.Dropout(dropout)": "resid_dropout = nn.Dropout(0.2)"},
        ),
        "the output is dropped twice": Case(
            "dropout_extra",
            {"(self.proj(y))": "(self.resid_dropout(self.proj(y)))"},
        ),
        "a dropout of the weights with neither rate nor mode": Case(
            "dropout_always_on dropout_rate_fixed",
            {DROPPED_WEIGHTS: "nn.functional.dropout(scores.softmax(dim=-1), 0.1)"},
        ),
        "a dropout of the output with neither rate nor mode": Case(
            "dropout_always_on dropout_rate_fixed",
            {"self.resid_dropout(self.proj(y))": "nn.functional.dropout(self.proj(y))"},
        ),
        "the projection created in forward": Case(
            "params_not_registered", {"self.proj(y)": "nn.Linear(C, C, bias=False).to(x)(y)"}
        ),
        "a parameter that is as wide as long in one call": Case(
            "params_extra",
            {
                "self.n_head = n_head": (
                    "self.n_head, self.positions = n_head, nn.Embedding(block_size, n_embd)"
                )
            },
        ),
        "a parameter of the mask's shape, with more axes": Case(
            "mask_is_parameter",
            {
                "self.n_head = n_head": (
                    "self.n_head, self.seen = n_head, nn.Parameter(torch.ones(1, 1, block_size, "
                    "block_size))"
                )
            },
        ),
        "an undefined name is not a wrong size": Case(
            "",
            {"if size not in sizes:": "if False:"},
            evidence=(
                "gpt2_attention: .*raised KeyError on .*"
                "A refusal is expected here: a ValueError that says why"
            ),
        ),
        "sizes of another model": Case("gpt2_sizes", {"1024, 16": "1024, 12"}),
        "three times the width is checked": Case(
            "divisibility_unchecked", {"if n_embd % n_head != 0": "if 3 * n_embd % n_head != 0"}
        ),
        "refuses every number of heads": Case(
            "refuses_allowed", {"if n_embd % n_head != 0:": "if True:"}
        ),
        "divisible heads refused": Case(
            "refuses_allowed divisibility_unchecked",
            {"if n_embd % n_head != 0:": "if n_embd % n_head == 0:"},
        ),
        "indices of ones are computed": Case(
            "mask_missing stub_untouched",
            {
                "scores.masked_fill(~self.visible[:T, :T], -math.inf)": (
                    f"scores + 0 * scores[..., {FUTURE}[0][:0]].sum()"
                )
            },
            unwritten=["gpt2_attention"],
        ),
        "super().__init__() is missing, after the refusal": Case(
            "super_init_missing stub_untouched",
            {"        super().__init__()\n": ""},
            unwritten=["gpt2_attention"],
        ),
        "the written refusal is reported, not the missing functions": Case(
            "divisibility_unchecked stub_untouched",
            {"if n_embd % n_head != 0:": "if False:"},
            unwritten=["forward", "gpt2_attention"],
            evidence=ACCEPTED,
        ),
    },
    "sdpa_equivalence": {
        "nothing is wrong": Case(base=OTHER, correct=True),
        "a bias, and numbers that no mutant has": Case(
            "proj_bias", BIASED | {"self.qkv(x).unflatten": "(2 * self.qkv(x)).unflatten"}, OTHER
        ),
        "a bias, and queries taken for keys": Case(
            "qkv_order proj_bias",
            BIASED | {".permute(2, 0, 3, 1, 4)": ".permute(2, 0, 3, 1, 4)[[1, 0, 2]]"},
            OTHER,
        ),
        "no mask on one path, and a module that is left in eval mode": Case(
            "mask_missing path_difference",
            {", is_causal=True": "", "module.train(training).flash": "module.flash"},
            OTHER,
        ),
        "a fused call without a mask": Case("mask_missing", {", is_causal=True": ""}, OTHER),
        "a fused call with a mask of zeros and ones": Case(
            "mask_added", {"is_causal=True": "attn_mask=x.new_ones(T, T).tril()"}, OTHER
        ),
        "heads that stay before the positions, on both paths": Case(
            "merge_no_transpose", {"y.transpose(1, 2).flatten(2)": "y.reshape(x.shape)"}, OTHER
        ),
        "heads of 64 channels": Case(
            "hard_coded_shape",
            {"view(B, T, self.n_head, self.head_dim)": "view(B, T, self.n_head, 64)"},
        ),
        "causal only for the longest sequence": Case(
            "mask_missing", {"is_causal=True": "is_causal=T == self.block_size"}
        ),
        "a mask that is made for the fused function": Case(
            "",
            {
                ", is_causal=True": (
                    ", attn_mask=torch.ones(T, T, dtype=torch.bool, device=x.device).tril()"
                )
            },
            hidden="materialised",
        ),
        "an exception that three mistakes share": Case(
            "",
            {
                "self.head_dim).transpose(1, 2)": "self.head_dim)",
                MERGED: "y.transpose(1, 2).flatten(2)",
            },
        ),
        "a division by the sum where the sum is near zero": Case(
            "softmax_missing",
            {
                "-math.inf)\n": "0.0)\n",
                "y = self.attn_dropout(scores.softmax(dim=-1))": (
                    "y = self.attn_dropout(scores / scores.sum(-1, keepdim=True))"
                ),
                "q @ k.transpose(-2, -1)": "torch.einsum('bhid,bhjd->bhij', q, k)",
            },
        ),
        "32 sequences of 128 tokens": Case(
            "hard_coded_shape",
            {"view(B, T, self.n_head, self.head_dim)": "view(32, 128, self.n_head, self.head_dim)"},
        ),
        "the fused layer created in forward": Case(
            "",
            {"self.qkv(x)": "nn.Linear(C, 3 * C, bias=False).to(x)(x)"},
            hidden="params_not_registered",
        ),
        "another order of the layers, and no projection": Case(
            "proj_missing",
            {
                "self.proj(y)": "y",
                "self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)\n        ": "",
                "self.attn_dropout = ": (
                    "self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)\n"
                    "        self.attn_dropout = "
                ),
            },
        ),
        "the fused call drops in every mode": Case(
            "dropout_always_on", {"self.dropout if self.training else 0.0": "0.1"}
        ),
        "randomness in other functions may be a consequence": Case("dropout_always_on", GATED),
        "randomness in one function that another function avoids": Case(
            "dropout_always_on",
            GATED
            | {
                "flash, modes = module.flash": (
                    "(p, module.dropout), (flash, modes) = (module.dropout, 0.0), (module.flash"
                ),
                "for part in module.modules()]\n": "for part in module.modules()])\n",
                "module.flash = flash\n": "module.flash, module.dropout = flash, p\n",
            },
        ),
        "the output is dropped in eval mode, too": Case(
            "dropout_always_on",
            {
                "self.resid_dropout(self.proj(y))": (
                    "nn.functional.dropout(self.proj(y), self.attn_dropout.p)"
                )
            },
        ),
        "randomness and exchanged queries and keys, in both functions": Case(
            "qkv_order dropout_always_on", GATED | {"q, k, v = ": "k, q, v = "}
        ),
        "a module that stays in float64 after the comparison": Case(
            "path_difference",
            {"        module.eval()\n": "        module.double().eval()\n        x = x.double()\n"},
        ),
        "the measure is wrong": Case("path_difference", MEASURED, states="right wrong"),
        # at home, the check of the measure runs last, and only if every other check passes
        "the measure and the measured module are wrong": Case(
            "context_unchecked", WITHOUT_SIGN | WITHOUT_LIMIT, hidden="path_difference"
        ),
        "the evidence of a function shows the first of two mistakes": Case(
            "dropout_always_on context_unchecked",
            {"if self.training else 0.0": ""} | WITHOUT_LIMIT,
            evidence=r"\A\w+: a second call in eval mode changes",
        ),
        "the evidence of a function shows the second mistake if it is the only one": Case(
            "context_unchecked", WITHOUT_LIMIT, evidence=ACCEPTED
        ),
    },
    "cross_attention": {
        "exchanged inputs of a module": Case(
            "sides_swapped",
            {"self, x, context,": "self, context, x,", "softmax(-2)": "softmax(-1)"},
            OTHER,
        ),
        "another spelling of infinity hides no misconception": Case(
            "softmax_query_axis", base=OTHER
        ),
        "weights averaged over heads": Case(
            "heads_share_weights",
            {"(weights @ v)": "(weights.mean(1, keepdim=True) @ v)"},
            title="one table of weights",
        ),
        "hidden is what is padding in every sequence": Case(
            "keep_across_batch", {"~keep[:, None, None, :]": "~keep.any(0)[None, None, None, :]"}
        ),
        "keep cut or padded to the queries": Case(
            "keep_on_queries",
            {
                "keep[:, None, None, :]": (
                    "torch.nn.functional.pad(keep[:, : x.shape[1]], (0, max(0, x.shape[1] - "
                    "keep.shape[1])), value=True)[:, None, :, None]"
                )
            },
        ),
        "sizes in an exception have the names of the lesson": Case(
            "keep_on_queries",
            {"keep[:, None, None, :]": "keep[:, None, :, None]"},
            evidence=r"\A.*size of tensor a \((\d+)\).* Here \1 is T_k, \d+ is T_q\. Axes meet",
        ),
    },
    "grouped_query_attention": {
        "a layer of another width": Case("layer_widths", base=OTHER),
        "one mistake raises in some calls, the other shows in the rest": Case(
            "kv_heads_repeated_wrong softmax_wrong_axis",
            {
                "group = self.n_head // self.n_kv_head": "group = self.n_head",
                "dim=-1) @ v": "dim=1) @ v",
            },
        ),
        "no transpose": Case("keys_not_transposed", {"q @ k.transpose(-2, -1)": "q @ k"}),
        "multiplied by the full width": Case(
            "scale_multiplied", {"/ math.sqrt(self.head_dim)": "* C"}
        ),
        "a count that is right where two sizes happen to fit": Case(
            "cache_bytes",
            {
                "2 * n_layer * n_kv_head * head_dim * T  #": (
                    "2 * n_layer * n_head * (n_head // head_dim) * T  #"
                )
            },
        ),
        "sets turned round": Case(
            "kv_heads_misassigned",
            {
                REPEATED_KEYS: REPEATED_KEYS.replace("k.rep", "k.flip(1).rep"),
                REPEATED_VALUES: REPEATED_VALUES.replace("v.rep", "v.flip(1).rep"),
            },
            title="read other heads of keys or values",
        ),
        "sets averaged": Case(
            "kv_heads_averaged",
            AVERAGED_VALUES
            | {REPEATED_KEYS: "k = k.mean(1, keepdim=True).repeat_interleave(self.n_head, dim=1)"},
            title="averaged or summed the heads of keys or values",
        ),
        "sets of values averaged": Case(
            "kv_heads_averaged",
            AVERAGED_VALUES,
            title="averaged or summed the heads of keys or values",
        ),
        "only one head of keys": Case(
            "kv_heads_first_only",
            {REPEATED_KEYS: "k = k[:, :1].repeat_interleave(self.n_head, dim=1)"},
            title="of keys, of values, or of both",
        ),
        "one head of all is projected": Case(
            "heads_one_width|heads_averaged",
            {f"self.proj({MERGED})": "self.proj(y[:, -1])"},
            title="Only head_dim channels",
        ),
        "tokens cut in two": Case(
            "kv_cut_wrong_axis",
            {"chunk(2, dim=-1)": "chunk(2, dim=1)"},
            title="along another axis than its channels",
        ),
        "outputs close to those of the reference": Case(
            base="grader/wrong/grouped_query_attention/distance_bias.py"
        ),
    },
    "rotary": {
        "an inverted check of an odd width": Case(
            "refuses_allowed", {"if hd % 2:": "if not hd % 2:"}
        ),
    },
    "kv_cache": {
        "the tokens' axis is right, heads apart": cache_case(HEADS_APART, 1),
        "the tokens' axis is right": cache_case("each.view(B, T, C)", 1),
        "the heads' axis": cache_case(HEADS_APART, 2),
        "the batch's axis, heads apart": cache_case(HEADS_APART, 0),
        "the channels' axis": cache_case("each.view(B, T, C)", -1),
        "the batch's axis": cache_case("each.view(B, T, C)", 0),
        "a module that keeps its last cache": Case("", LAST, OTHER, hidden="cache_shared"),
        "a module that keeps its last cache, and unscaled scores": Case(
            "scale_missing", LAST | {" / math.sqrt(q.size(-1))": ""}, OTHER
        ),
        "two mistakes, one visible from the second chunk on": Case(
            "cache_mask_top_left scale_sqrt_c",
            {
                "torch.arange(past, past + T, ": "torch.arange(T, ",
                "math.sqrt(self.head_dim)": "math.sqrt(C)",
            },
        ),
        "two mistakes visible in each chunk": Case(
            "mask_missing merge_no_transpose",
            {
                "weights = scores.masked_fill(key > query, -math.inf)": "weights = scores",
                "y = y.transpose(1, 2)": "y = y",
            },
        ),
        "layers in a list that no .to reaches": Case(
            "params_not_registered",
            {
                "self.proj = nn.Linear(n_embd, n_embd, bias=False)": (
                    "self.layers = [nn.Linear(n_embd, n_embd, bias=False)]"
                ),
                "self.proj(": "self.layers[0](",
            },
        ),
        "an assertion about a computed result is not a guard": Case(
            "",
            {"split(C, dim=-1)": "split(C, dim=-1)\n        assert q.shape == (B, C, T)"},
        ),
        "keys and values kept on the module": Case(
            "cache_shared",
            {
                "past = 0 if cache is None else cache[0].shape[2]": (
                    "cache = getattr(self, 'kept', None)\n        "
                    "past = 0 if cache is None or cache[0].shape[0] != B else cache[0].shape[2]"
                ),
                "if cache is not None:": "if past:",
                "query = torch.arange": (
                    "self.kept = (k.detach(), v.detach())\n        query = torch.arange"
                ),
            },
        ),
        "a cache kept in a mutable default argument": Case(
            "cache_shared",
            {
                "cache=None)": "cache={})",
                "past = 0 if cache is None else cache[0].shape[2]": (
                    "past = cache['k'].shape[2] if 'k' in cache else 0"
                ),
                "if cache is not None": "if past",
                "cat([cache[0]": "cat([cache['k']",
                "cat([cache[1]": "cat([cache['v']",
                RETURNED: "cache['k'], cache['v'] = k, v\n        return self.proj(y), cache",
            },
        ),
        "a dict of masks for each past": Case(
            "mask_not_moved",
            {
                "self.proj = nn.Linear(": "self.masks = {}\n        self.proj = nn.Linear(",
                "key > query, -math.inf": (
                    "self.masks.setdefault((past, T), key > query), -math.inf"
                ),
            },
        ),
        "the output is dropped": Case(
            "dropout_extra",
            {RETURNED: "return nn.functional.dropout(self.proj(y), 0.1, self.training), (k, v)"},
        ),
        "two future tokens": Case("mask_peeks_ahead", {"key > query,": "key > query + 2,"}),
        "past keys as past values": Case(
            "values_wrong_source",
            {"v = torch.cat([cache[1], v], dim=2)": "v = torch.cat([cache[0], v], dim=2)"},
        ),
        "the limit refused, and no scale": Case(
            "refuses_allowed scale_missing",
            {
                "if past + T > self.block_size:": "if past + T >= self.block_size:",
                " / math.sqrt(self.head_dim)": "",
            },
        ),
        "any scale beside a cache": Case(
            "scale_constant", {"/ math.sqrt(self.head_dim)": "* 0.37"}
        ),
        "any fill beside a cache": Case(
            "mask_weak_fill", {"key > query, -math.inf": "key > query, -4.4"}
        ),
        "values kept twice": Case(
            "cache_order",
            {RETURNED: "return self.proj(y), (v, v)"},
            title="mixed up old and new tokens, or keys and values",
        ),
        "the last four tokens kept": Case(
            "cache_overwritten",
            {RETURNED: "return self.proj(y), (k[:, :, -4:], v[:, :, -4:])"},
            title="does not hold all tokens so far",
        ),
    },
    "sliding_window": {
        "nothing is wrong": Case(base=OTHER, correct=True),
        "one of two refusals": Case(
            "argument_unchecked", {"window < 1 or": "window < 0 or"}, OTHER
        ),
        "a fixed device": Case("hard_coded_device", {", device=device": ""}, OTHER),
        "a mutated argument": Case(
            "input_mutated", {"q @ k.mT": "q @ k.mul_(2).div_(2).add_(1e-12).mT"}, OTHER
        ),
        "a guard that another function reaches": Case(
            "refuses_allowed argument_unchecked", {"if T_q > T_k:": "if T_q == T_k:"}
        ),
        "a mask of four axes, for scores of two, three and four": Case(
            "hard_coded_shape", {"scores.masked_fill(~mask": "scores.masked_fill(~mask[None, None]"}
        ),
        "only the far past is visible": Case(
            "window_far_past", {"(key <= query) & (key > query - window)": "key <= query - window"}
        ),
        "a window of half the length": Case(
            "window_halved", {"key > query - window)": "key >= query - window // 2)"}
        ),
        "a softmax divided by a detached sum": Case(
            "gradient_cut",
            {
                'torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)': (
                    "(mask * scores.exp()) / (mask * scores.exp()).sum(-1, keepdim=True).data"
                )
            },
        ),
    },
    "tiled_attention": {
        "each mistake is attributed to its function": Case(
            "tile_no_rescale hard_coded_device",
            base=OTHER,
            functions="online_softmax tiled_attention",
        ),
        # all scores may lie far below 0, and then exp gives 0 for each of them
        "the running maximum starts at 0": Case(
            "tile_overflow",
            {"torch.full_like(scores[..., :1], -math.inf)": "torch.zeros_like(scores[..., :1])"},
        ),
        "a block measured from its own maximum": Case(
            "tile_max_not_carried",
            {"(piece - higher).exp()": "(piece - piece.amax(-1, keepdim=True)).exp()"},
        ),
        "refuses lengths that are no multiple of the block": Case(
            "tile_ragged_refused",
            {
                "    for top in range(0, T, block_q):": (
                    "    if T % block_q or T % block_k:\n        raise ValueError(T)\n"
                    "    for top in range(0, T, block_q):"
                )
            },
        ),
        "any scale in tiles": Case("scale_constant", {"/ math.sqrt(hd)": "* 0.37"}),
        "any fill in tiles": Case(
            "mask_weak_fill", {"key > query, -math.inf": "key > query, -4.4"}
        ),
        "an output whose first part is right": Case(
            base="grader/wrong/tiled_attention/lse_is_maximum.py"
        ),
    },
}


@pytest.mark.parametrize(
    ("exercise", "case"),
    [
        pytest.param(exercise, case, id=f"{exercise}: {title}")
        for exercise, cases in CASES.items()
        for title, case in cases.items()
    ],
)
def test_check_and_grade_name_the_expected_misconceptions(
    sides: Sides, exercise: str, case: Case
) -> None:
    text = case.text(sides.exercise(exercise))
    graded, home = sides.both_results(exercise, text)
    assert (graded.score == graded.max_score) is case.correct
    if case.correct:
        assert home.score + home.unseen == home.max_score
    assert side_differences(graded, home) == []
    assert named_misconceptions(home) == case.named.split()
    assert named_misconceptions(graded) == [*case.named.split(), *case.hidden.split()]
    if case.evidence:
        changed_text = next(iter(case.changes.values()))
        line = text[: text.index(changed_text)].count("\n") + 1
        reported = "\n".join(f"{report.name}: {report.evidence}" for report in home.functions)
        assert re.search(case.evidence.replace("LINE", str(line)), reported)
    if case.title:
        assert case.title in home.diagnosis[0].title
        assert graded.diagnosis[0].title == home.diagnosis[0].title
    if case.also is not None:
        assert [misconception.id for misconception in graded.also] == case.also.split()
    if case.states:
        for result in (graded, home):
            assert [function.state for function in result.functions] == case.states.split()
    if case.functions:
        assert [
            misconception.function for misconception in home.diagnosis
        ] == case.functions.split()


def test_course_check_names_a_mutation_seen_only_in_calls_of_no_visible_check(
    sides: Sides,
) -> None:
    recorded = read(sides.exercise("sdpa_equivalence").fingerprints)
    assert len({call for check in recorded.checks for call in check.calls}) < len(recorded.calls)
    changes = {
        "q, k, v = self.qkv(x)": "x.mul_(1.5)\n        q, k, v = self.qkv(x)",
        "y = y.transpose(1, 2)": "y = y.clamp(max=0.01).transpose(1, 2)",
    }
    result = sides.home("sdpa_equivalence", changes)
    assert "input_mutated" in [named.id for named in (*result.diagnosis, *result.also)]


EXERCISES = load_course(REPOSITORY).exercises


def sample(exercise: Exercise) -> Iterator[SampledAttempt]:
    """Yield a mutant, this mutant with its later functions unfinished, and a pair of mutants."""
    bank = load_bank(exercise)
    mutant = bank.mutants[len(bank.mutants) // 2]
    attempt = SampledAttempt("mutant", mutant.id, text_of(exercise, mutant))
    yield attempt
    yield from islice(unfinished_attempts(exercise, attempt), 1)
    texts = (text_of_pair(exercise, bank, *pair) for pair in pairs_of(bank))
    yield SampledAttempt("pair", "", next(filter(None, texts)))


@pytest.mark.parametrize(
    "exercise", [pytest.param(exercise, id=exercise.id) for exercise in EXERCISES]
)
def test_check_and_grade_agree_about_sampled_mutants(sides: Sides, exercise: Exercise) -> None:
    checks = "".join(path.read_text("utf-8") for path in with_neighbours(exercise.checks))
    for attempt in sample(exercise):
        graded, home = sides.both_results(exercise.id, attempt.text)
        if attempt.category == "pair" and not named_misconceptions(home):
            continue  # only grading tries pairs of mutants that were not recorded
        assert (attempt, side_differences(graded, home)) == (attempt, [])
        only_graded = (
            () if home.is_done else named_misconceptions(graded)[len(named_misconceptions(home)) :]
        )
        assert (attempt, [name for name in only_graded if f'"{name}"' not in checks]) == (
            attempt,
            [],
        )
