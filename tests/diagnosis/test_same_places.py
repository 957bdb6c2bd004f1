"""Where an attempt is wrong, and as what, names it on a student's machine where its numbers are nobody's."""

from __future__ import annotations

import dataclasses
import sys
import types
from pathlib import Path

import pytest

from manyheads.checks.local import LocalRecordingRunner
from manyheads.course import load_course
from manyheads.diagnosis.recording import Recording
from manyheads.diagnosis.recording_file import read
from manyheads.result import ExerciseResult
from manyheads.student.check_attempt import check_attempt
from tests.diagnosis.told_at_home import SCORES
from tests.make import edited

COURSE = load_course(Path(__file__).parents[2])
HEADS = """from torch import nn
from torch.nn import functional as F

class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError(f"{d_out}, {num_heads}")
        self.heads, self.longest, self.p = num_heads, context_length, dropout
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3))
        self.out_proj = nn.Linear(d_out, d_out)
        self.more = None

    def forward(self, x):
        if x.shape[1] > self.longest:
            raise ValueError(f"{x.shape[1]}, {self.longest}")
        q, k, v = (w(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for w in (self.W_query, self.W_key, self.W_value))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.p * self.training)
        return self.out_proj(y.transpose(1, 2).flatten(2))
"""


def checked(monkeypatch: pytest.MonkeyPatch, recording: Recording, source: str) -> ExerciseResult:
    module = types.ModuleType("attempt")
    monkeypatch.setitem(sys.modules, "attempt", module)
    exec(compile(source, "a.py", "exec", dont_inherit=True), vars(module))
    return check_attempt(recording, LocalRecordingRunner(vars(module)), source)


def recorded(exercise: str) -> Recording:
    return read(next(each for each in COURSE.exercises if each.id == exercise).fingerprints)


def of_reference(exercise: str) -> str:
    return next(each for each in COURSE.exercises if each.id == exercise).solution.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("exercise", "old", "new", "named"),
    [
        pytest.param("attention_scores", "", "", [], id="nothing"),
        pytest.param("attention_scores", "k)) @ v", "k)).detach() @ v", ["gradient_cut"], id="a cut that no mutant has"),
        pytest.param("attention_scores", "@ x.mT).", "@ x.mT).exp().", [], id="numbers that no mutant has"),
        pytest.param("weight_split", "", "", [], id="nothing of a module"),
        pytest.param("weight_split", "raise ValueError(f\"{d", "raise OSError(f\"{d", ["divisibility_unchecked"], id="a refusal"),
        pytest.param("weight_split", "more = None", "more = nn.LayerNorm(d_in)", ["params_extra"], id="parameters of its own"),
        pytest.param(
            "weight_split", "more = None", "more = nn.Linear(context_length, context_length, bias=False)",
            ["mask_is_parameter"], id="a parameter of the mask's shape",
        ),
        pytest.param(
            "fused_qkv", "self.n_head = n_head", "self.n_head, self.positions = n_head, nn.Embedding(block_size, n_embd)",
            ["params_extra"], id="a parameter that is as wide as long in one call",
        ),
        pytest.param(
            "fused_qkv", "self.n_head = n_head", "self.n_head, self.seen = n_head, nn.Parameter(torch.ones(1, 1, block_size, block_size))",
            ["mask_is_parameter"], id="a parameter of the mask's shape, with more axes",
        ),
    ],
)  # fmt: skip
def test_a_place_names_it(monkeypatch: pytest.MonkeyPatch, exercise: str, old: str, new: str, named: list[str]) -> None:
    right = {"weight_split": HEADS, "attention_scores": SCORES}.get(exercise) or of_reference(exercise)
    assert old in right
    result = checked(monkeypatch, recorded(exercise), right.replace(old, new) if old else right)
    assert [each.id for each in result.diagnosis] == named


def test_a_name_that_is_looked_up_in_vain_is_no_wrong_size(monkeypatch: pytest.MonkeyPatch) -> None:
    fused = next(each for each in COURSE.exercises if each.id == "fused_qkv")
    source = edited(fused.solution.read_text(encoding="utf-8"), ("if size not in sizes:", "if False:"))
    result = checked(monkeypatch, recorded("fused_qkv"), source)
    assert [check.id for check in result.checks if check.outcome not in ("passed", "skipped")] == ["gpt2_refuses"]
    assert result.diagnosis == ()


MEASURE = """import torch
from manyheads.checks.local import namespace_of
from pathlib import Path

locals().update(namespace_of(Path(SOLUTION)))

@torch.no_grad()
def max_path_difference(module, x):
    was, mode = module.flash, module.training
    module.eval()
    module.flash = True
    y = module(x)
    module.flash = False
    y = y - module(x)
    module.flash = was
    module.train(mode)
    return y.abs().max().item()
"""


@pytest.mark.parametrize(("old", "named"), [("", []), (".abs()", ["path_difference"])], ids=["right", "without abs"])
def test_what_an_aspect_means_names_it(monkeypatch: pytest.MonkeyPatch, old: str, named: list[str]) -> None:
    exercise = next(each for each in COURSE.exercises if each.id == "sdpa_equivalence")
    found = read(exercise.fingerprints)
    checks = [
        check.model_copy(
            update={
                "asks": tuple(
                    ask.model_copy(update={"means": "path_difference"}) if ask.aspect == "difference" else ask
                    for ask in check.asks
                )
            }
        )
        for check in found.checks
    ]
    found = dataclasses.replace(found, content=dataclasses.replace(found.content, checks=tuple(checks)))
    source = MEASURE.replace("SOLUTION", repr(str(exercise.solution)))
    source = source.replace(f"y{old}.max()", "y.max()") if old else source
    assert [each.id for each in checked(monkeypatch, found, source).diagnosis] == named


LOOP = """import torch
from torch.nn import functional as F

def mha_by_loop(mha, x):
    q, k, v = (x @ mha.qkv.weight.mT).chunk(3, -1)
    parts = [each.split(mha.head_dim, -1) for each in (q, k, v)]
    heads = [F.scaled_dot_product_attention(q, k, v, is_causal=True) for q, k, v in zip(*parts)]
    return torch.cat(heads, -1) @ mha.proj.weight.mT
"""


@pytest.mark.parametrize(
    ("layers", "fails"),
    [((), []), (("qkv",), ["gradients"]), (("qkv", "proj"), [])],
    ids=["none", "one", "all: what a right attempt copies"],
)
def test_of_layers_that_are_passed_one_alone_is_not_cut_off(
    monkeypatch: pytest.MonkeyPatch, layers: tuple[str, ...], fails: list[str]
) -> None:
    source = LOOP
    for layer in layers:
        source = source.replace(f"{layer}.weight", f"{layer}.weight.data")
    result = checked(monkeypatch, recorded("mha_by_loop"), source)
    assert [each.id for each in result.checks if each.outcome != "passed"] == fails
