"""At the real course: what a student reads is true, says which, and speaks of nothing that is not there."""

import re

import pytest

from manyheads.diagnosis.bank import load_bank
from manyheads.report.words import attempt_words
from tests.diagnosis.both_sides import Sides

STUB = "raise NotImplementedError"
SCORES = "return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])"


@pytest.mark.parametrize(("exercise", "changes", "says", "never"), [
    pytest.param("attention_scores", {SCORES: SCORES.replace("return", "scores =")},
        "✗ attention_scores: It returns None, as where a return is missing.", "spelling", id="a return is missing"),
    pytest.param("attention_scores", {"v: torch.Tensor)": "values: torch.Tensor)", ") @ v": ") @ values"},
        "✗ attend: Its arguments are not the ones that the exercise names.", "A name, an argument", id="another argument"),
    pytest.param("causal_mask", {"(scores: torch.Tensor": "(att: torch.Tensor", "return scores.masked": "return att.masked",
        "    mask = causal_mask(": "    scores = att\n    mask = causal_mask("},
        "✗ causal_weights: Its arguments are not the ones", "not right yet", id="another argument in two functions"),
    pytest.param("attention_scores", {SCORES: "return q @ k.transpose(-2, -1)", "return torch.softmax(scores, dim=-1)": STUB,
        "return attention_weights(attention_scores(q, k)) @ v": STUB},
        "✗ attention_scores: You did not scale the scores.", "Or:", id="an alternative in functions that are not written"),
    pytest.param("reshape_dance", {"    B, nh, T, hd = y.shape\n    return y.transpose(1, 2)": f"    {STUB}  #",
        "return x.transpose(1, 2)": "return x.reshape(B, n_head, T, C // n_head)"},
        "✗ split_heads: You viewed straight to", "back again", id="an alternative of a merge that is not written"),
    pytest.param("sdpa_equivalence", {"q @ k.transpose(-2, -1)": "q @ k", "module: CausalSelfAttention": "module"},
        "· max_path_difference: waits for CausalSelfAttention", "✗ max_path", id="a measure of a class that raises"),
    pytest.param("sdpa_equivalence", {"        module.eval()\n": "        module.eval(); modes = []\n"},
        "the module is left in another mode, training or eval, than it was in", "as it was asked", id="a mode that is not put back"),
    pytest.param("sdpa_equivalence", {"torch.inference_mode()": "torch.enable_grad()"},
        "gradients are recorded on the way", "as it was asked", id="gradients that are recorded"),
    pytest.param("sdpa_equivalence", {"        self.flash = flash\n": "        self.flash = bool(n_embd)\n"},
        "the attribute flash should be False; yours is True", "as it was asked", id="an attribute"),
    pytest.param("fused_qkv", {"(1280, 20)": "(1280, 10)"},
        "differs from the one that is due, in more than its weights", "as it was asked", id="a module of other sizes"),
    pytest.param("self_attention", {"scores = scores.masked_fill": "scores.masked_fill"},
        "an edit of the first argument in [:, 1:, 1:] changes", "the input was", id="the future is edited"),
    pytest.param("cross_attention", {"scores = scores.masked_fill": "scores.masked_fill"},
        "an edit of the second argument in [:, 1:] changes", "the input was", id="the padding is edited"),
    pytest.param("weight_split", {"self.dropout = nn.Dropout(dropout)": "self.dropout = lambda w: nn.functional.dropout(w, dropout)"},
        "another value of dropout in eval mode changes", "the input was", id="dropout in eval mode"),
    pytest.param("rotary", {"base **": "10000.0 **"},
        "another value of the third argument leaves numbers as they were", "the input was", id="a base that is not used"),
    pytest.param("rotary", {" / math.sqrt(q.shape[-1])": ""},
        "scores turned queries against turned keys, over √head_dim", "takes the base", id="a scale, and no other base"),
    pytest.param("causal_mask", {", device=device": ""},
        "the output is on cpu, and not on the device that was asked for", "expected one", id="a device that is not used"),
    pytest.param("tiled_attention", {"-math.inf), 0.0, 0.0": "-math.inf), 0.0, torch.zeros_like(rows)"},
        "Here 6 is hd, 7 is hd_v", " is B", id="the number of an axis is no size"),
    pytest.param("sdpa_equivalence", {"scores = scores.masked_fill(~self.visible[:T, :T], -math.inf)": "",
        "y = self.attn_dropout(scores.softmax(dim=-1)) @ v": "y = F.scaled_dot_product_attention(q, k, v, is_causal=True)"},
        "a fused function, which has no second derivative", "an operation", id="no second derivative"),
    pytest.param("attention_scores", {"return weights @ x": "return None[0]"},
        "does every function return its result? Python says", r"\?\.", id="a question has one mark at its end"),
])  # fmt: skip
def test_it_says(sides: Sides, exercise: str, changes: dict[str, str], says: str, never: str) -> None:
    functions = attempt_words(sides.home(exercise, changes)).functions
    text = "\n".join(text for f in functions for text in (f"{f.mark} {f.head}", *(each for _, each, _ in f.told)))
    assert says in text
    assert not re.search(never, text)


@pytest.mark.parametrize(("exercise", "absent"), [
    ("attention_scores", r"\bheads?\b|n_head|dropout"),
    ("causal_mask", r"\bheads?\b|n_head|dropout"),
    ("self_attention", r"\bheads?\b|n_head|head_dim|padding"),
    ("sliding_window", r"\bheads?\b|n_head|dropout|padding"),
    ("reshape_dance", r"softmax|dropout|scores"),
])  # fmt: skip
def test_no_name_and_no_hint_speaks_of_what_an_exercise_does_not_have(sides: Sides, exercise: str, absent: str) -> None:
    bank = load_bank(sides.exercise(exercise))
    texts = {mutant.id: bank.texts[mutant.id] for mutant in bank.mutants}
    assert not [(id_, say) for id_, t in texts.items() for say in (t.title, *t.hints) if re.search(absent, say)]
