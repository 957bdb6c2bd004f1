"""Wrong attempts that full marks got through: each is the reference with one thing in another way, and fails its check."""

from __future__ import annotations

from types import ModuleType

import pytest

from manyheads.checks.local import LocalRecordingRunner
from manyheads.course import Course
from manyheads.judge.catalogue import Catalogue

Changes = tuple[tuple[str, str], ...]  # what stands in the reference once, and what stands there instead


@pytest.fixture(scope="module")
def checks(course: Course) -> Catalogue:
    return Catalogue(course)


def failed(course: Course, checks: Catalogue, exercise: str, source: str) -> set[str]:
    """The checks of the exercise that this attempt does not pass."""
    assignment = course.assignments[0]
    found = next(e for e in assignment.exercises if e.id == exercise)
    module = ModuleType("attempt")
    exec(compile(source, "attempt.py", "exec"), vars(module))
    subject = LocalRecordingRunner(vars(module))
    outcomes = checks.run(found, subject, checks.reference(found), b"holes", exercise)
    assert not any(outcome.fault for outcome in outcomes)
    return {outcome.id for outcome in outcomes if outcome.outcome != "passed"}


def reference(course: Course, exercise: str) -> str:
    assignment = course.assignments[0]
    found = next(e for e in assignment.exercises if e.id == exercise)
    return found.solution.read_text(encoding="utf-8")


def changed(source: str, changes: Changes) -> str:
    for old, new in changes:
        assert source.count(old) == 1, f"{old!r} stands {source.count(old)} times in the reference"
        source = source.replace(old, new)
    return source


SDPA = "F.scaled_dot_product_attention(q, k, v, dropout_p=dropout_p, is_causal=True)"
BY_HAND = "            scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)  # (B, nh, T, T)\n"
MEASURED = "(fast - by_hand).abs().max().item()"
MATH = "with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):"
HIDDEN = "torch.utils._python_dispatch._disable_current_modes()"


def in_kernel(*around: str) -> Changes:
    """The manual path, done by the fused function's mathematical backend, within these contexts."""
    lines = ["            import torch.nn.attention, torch.utils._python_dispatch"]
    for depth, context in enumerate((MATH, *around)):
        lines.append(" " * (12 + 4 * depth) + context)
    lines.append(" " * (16 + 4 * len(around)) + "y = F.scaled_dot_product_attention(q, k, v, is_causal=True)")
    lines.append("            y = self.attn_dropout(torch.ones_like(y[..., :1])) * y\n")
    return ((BY_HAND, "\n".join(lines)), *REST_OF_MANUAL)


REST_OF_MANUAL: Changes = (
    ("            scores = scores.masked_fill(~self.visible[:T, :T], -math.inf)\n", ""),
    ("            y = self.attn_dropout(scores.softmax(dim=-1)) @ v  # (B, nh, T, hd)\n", ""),
)

FAST_PATH = {
    "hands SDPA a mask that it makes": (
        (SDPA, SDPA.replace("is_causal=True", "attn_mask=torch.ones(T, T, device=x.device).tril() > 0")),
    ),
    "makes a mask for the whole block": (
        (
            SDPA,
            SDPA.replace(
                "is_causal=True",
                "attn_mask=torch.ones_like(self.visible).tril()[:T, :T]",
            ),
        ),
    ),
    "makes the squares in one long row": ((SDPA, SDPA + " + 0 * torch.ones(T * T).sum()"),),
}
WRITTEN_OUT = {
    "lets the mathematical backend do the work": in_kernel(),
    "lets it do the work where functions cannot be watched": in_kernel("with torch._C.DisableTorchFunction():"),
    "lets it do the work where no operation can be watched": in_kernel(f"with {HIDDEN}:"),
}
MEASURE = {
    "the size of rounding, from the output": "by_hand.abs().max().item() * 2e-16",
    "the size of rounding, from the weights": "float(module.proj.weight.abs().max()) * 1e-15",
    "the first sequence alone": "(fast - by_hand)[0].abs().max().item()",
    "the last sequence alone": "(fast - by_hand)[-1].abs().max().item()",
    "three times the root mean square": "3 * (fast - by_hand).square().mean().sqrt().item()",
    "the largest, signed": "(fast - by_hand).max().item()",
    "the largest of the other sign": "(by_hand - fast).max().item()",
    "the mean": "(fast - by_hand).abs().mean().item()",
    "nothing at all": "0.0",
    "one path against itself": "(fast - fast).abs().max().item()",
}
WEIGHTS, DROPPED = "scores.softmax(dim=-1)", "self.attn_dropout(scores.softmax(dim=-1))"
OF_CHANNELS: dict[str, dict[str, Changes]] = {
    "fused_qkv": {
        "the values": ((DROPPED, WEIGHTS), ("weights @ v", "weights @ self.attn_dropout(v)")),
        "what the heads answer": ((DROPPED, WEIGHTS), ("self.proj(y)", "self.proj(self.attn_dropout(y))")),
    },
    "sdpa_equivalence": {
        "the values": ((f"{DROPPED} @ v", f"{WEIGHTS} @ self.attn_dropout(v)"),),
        "what the heads answer": ((f"{DROPPED} @ v", f"self.attn_dropout({WEIGHTS} @ v)"),),
    },
}
OTHER_INPUT = {
    "twice the input": "2 * x",
    "another input": "torch.randn_like(x)",
    "the input without its first token": "x[:, 1:]",
}


@pytest.mark.parametrize("changes", OF_CHANNELS["fused_qkv"].values(), ids=OF_CHANNELS["fused_qkv"].keys())
def test_a_dropout_in_place_of_the_weights_of(course: Course, checks: Catalogue, changes: Changes) -> None:
    source = changed(reference(course, "fused_qkv"), changes)
    assert failed(course, checks, "fused_qkv", source) == {"drops_weights"}


@pytest.mark.parametrize(
    "changes", OF_CHANNELS["sdpa_equivalence"].values(), ids=OF_CHANNELS["sdpa_equivalence"].keys()
)
def test_by_hand_a_dropout_in_place_of_the_weights_of(course: Course, checks: Catalogue, changes: Changes) -> None:
    source = changed(reference(course, "sdpa_equivalence"), changes)
    assert failed(course, checks, "sdpa_equivalence", source) == {"drops"}


@pytest.mark.parametrize("changes", FAST_PATH.values(), ids=FAST_PATH.keys())
def test_a_fast_path_that_makes_a_square(course: Course, checks: Catalogue, changes: Changes) -> None:
    source = changed(reference(course, "sdpa_equivalence"), changes)
    assert failed(course, checks, "sdpa_equivalence", source) == {"paths_differ"}


@pytest.mark.parametrize("changes", WRITTEN_OUT.values(), ids=WRITTEN_OUT.keys())
def test_a_manual_path_that(course: Course, checks: Catalogue, changes: Changes) -> None:
    source = changed(reference(course, "sdpa_equivalence"), changes)
    assert "paths_differ" in failed(course, checks, "sdpa_equivalence", source)


@pytest.mark.parametrize("call", ["module(x)", "module.forward(x)"])
@pytest.mark.parametrize("given", MEASURE.values(), ids=MEASURE.keys())
def test_a_difference_that_is(course: Course, checks: Catalogue, given: str, call: str) -> None:
    source = changed(reference(course, "sdpa_equivalence"), ((MEASURED, given),)).replace(" = module(x)", f" = {call}")
    is_always_0 = given in ("0.0", "(fast - fast).abs().max().item()")  # which says nothing, and earns nothing
    assert failed(course, checks, "sdpa_equivalence", source) == {"measures", *["leaves_no_trace"] * is_always_0}


@pytest.mark.parametrize("x", OTHER_INPUT.values(), ids=OTHER_INPUT.keys())
def test_a_difference_of(course: Course, checks: Catalogue, x: str) -> None:
    source = reference(course, "sdpa_equivalence").replace(" = module(x)", f" = module({x})")
    assert failed(course, checks, "sdpa_equivalence", source) == {"measures"}


MADE = "return CausalSelfAttention(n_embd, n_head, block_size=1024)"
UNUSUAL = (
    ("        self.block_size = block_size\n", "        self.longest = block_size\n"),
    (
        'if self.block_size < T:\n            raise ValueError(f"T = {T} tokens do not fit block_size = {self.block_size}")',
        'if self.longest < T:\n            raise ValueError(f"T = {T} tokens, {self.longest} at most")',
    ),
)
GPT2 = {
    "a block of 512 under an unusual name": (*UNUSUAL, (MADE, MADE.replace("1024", "512"))),
    "a block of 2048 under an unusual name": (*UNUSUAL, (MADE, MADE.replace("1024", "2048"))),
    "a block of 512 that says 1024": (
        *UNUSUAL,
        (
            MADE,
            f"{MADE.replace('return', 'made =').replace('1024', '512')}\n    made.block_size = 1024\n    return made",
        ),
    ),
    "other heads that say the right number": (
        ("        self.n_head = n_head\n", "        self.n_head = self.shared = n_head\n"),
        ("        q = q.view(B, T, self.n_head, self.head_dim)", "        q = q.view(B, T, self.shared, -1)"),
        ("        k = k.view(B, T, self.n_head, self.head_dim)", "        k = k.view(B, T, self.shared, -1)"),
        ("        v = v.view(B, T, self.n_head, self.head_dim)", "        v = v.view(B, T, self.shared, -1)"),
        (MADE, f"{MADE.replace('return', 'made =')}\n    made.shared //= 4 if n_head < 25 else 5\n    return made"),
    ),
    "a class of its own that only describes itself": (
        (
            MADE,
            "class Described(CausalSelfAttention):\n        def forward(self, x):\n            return 2 * super().forward(x)"
            f"\n    made = {MADE.removeprefix('return ')}\n    made.forward = lambda x: made.proj(x[:, :1024])\n    return made",
        ),
    ),
}


@pytest.mark.parametrize("changes", GPT2.values(), ids=GPT2.keys())
def test_gpt2_with(course: Course, checks: Catalogue, changes: Changes) -> None:
    found = failed(course, checks, "fused_qkv", changed(reference(course, "fused_qkv"), changes))
    gives_x = "made.proj(x" in changes[0][1]  # for the weights that these checks load
    assert found == {"gpt2_sizes", *["gpt2_refuses"] * gives_x}


BEYOND = """

def right_up_to(most, count, function):
    def answer(*args, **kwargs):
        given = function(*args, **kwargs)
        return given if count(*args, **kwargs) <= most else 0.9 * given.double() + 0.05
    return answer
"""
TOKENS = {
    "attention_scores": ("simplified_attention", "attention_scores", "attention_weights", "attend"),
    "causal_mask": ("mask_scores", "causal_weights"),
    "self_attention": ("CausalAttention.forward",),
    "reshape_dance": ("merge_heads",),
    "weight_split": ("MultiHeadAttention.forward",),
    "mha_by_loop": ("mha_by_loop",),
    "fused_qkv": ("CausalSelfAttention.forward",),
    "sdpa_equivalence": ("CausalSelfAttention.forward",),
}
LONG = "lambda *a, **k: max([*a, *k.values()][-1 if len(a) + len(k) > 1 else 0].shape[-2:][:1])"


@pytest.mark.parametrize(("exercise", "name"), [pytest.param(e, n, id=n) for e, names in TOKENS.items() for n in names])
def test_right_up_to_sixteen_tokens(course: Course, checks: Catalogue, exercise: str, name: str) -> None:
    source = reference(course, exercise) + BEYOND + f"\n{name} = right_up_to(16, {LONG}, {name})\n"
    assert failed(course, checks, exercise, source)


def test_a_mask_that_is_right_up_to_sixteen_tokens(course: Course, checks: Catalogue) -> None:
    source = reference(course, "causal_mask") + (
        "\nright = causal_mask\n\ndef causal_mask(T, device=None):\n    return right(T, device).clone().logical_or_(torch.tensor(T > 16))\n"
    )
    assert failed(course, checks, "causal_mask", source)


HEADS = {
    "reshape_dance": ("split_heads", "lambda x, n_head: n_head"),
    "weight_split": ("MultiHeadAttention.forward", "lambda self, x: self.num_heads"),
    "mha_by_loop": ("mha_by_loop", "lambda mha, x: mha.n_head"),
    "fused_qkv": ("CausalSelfAttention.forward", "lambda self, x: self.n_head"),
    "sdpa_equivalence": ("CausalSelfAttention.forward", "lambda self, x: self.n_head"),
}


@pytest.mark.parametrize("exercise", HEADS)
def test_right_up_to_seven_heads(course: Course, checks: Catalogue, exercise: str) -> None:
    name, count = HEADS[exercise]
    source = reference(course, exercise) + BEYOND + f"\n{name} = right_up_to(7, {count}, {name})\n"
    assert failed(course, checks, exercise, source)
