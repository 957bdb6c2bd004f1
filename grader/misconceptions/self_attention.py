"""Wrong attempts at one causal head."""

from manyheads.checks import edit

from ._kept import Keeping
from ._mutants import KEYS_NOT_TRANSPOSED, dropped_in_place, each, known, written_in
from ._separate_qkv import KNOBS, OPTIONS, OneHead, Runs, attention_mutants, renamed


def make(**faults):
    """The exercise's names, with these faults."""
    k = known(faults, KNOBS)
    k.holder_in_use = k.holder
    return {"CausalAttention": type("CausalAttention", (Keeping, OneHead), {"knobs": k})}


MUTANTS = (
    *attention_mutants(("sqrt_d_query",), ("batch", "square", "everything")),
    *Runs.LAYERS,
    *Runs.INPUT,
    *each("hard_coded_shape", sizes=written_in(C=(2, 4, 64, 3, 8, 768))),
    *Runs.WRITTEN_IN,
    *each("params_not_registered", registered=("list", "tensor", "hidden", "forward", "anew")),
    *each("params_extra", extra=("out_proj", "norm", "temperature")),
    *each("params_extra", names=(("w_q", "w_k", "w_v"), ("q_proj", "k_proj", "v_proj"))),
    ("interface", edit("class CausalAttention(", "class SelfAttention(")),
    ("interface", edit("return weights @ v", "return weights @ v, None")),
    renamed(f"context_length: int, {OPTIONS}", "block_size: int, p: float = 0.0, bias: bool = False"),
    *Runs.SIGNATURES,
    ("hard_coded_dtype", edit("torch.softmax(scores, dim=-1)", "torch.softmax(scores.float(), dim=-1)")),
    KEYS_NOT_TRANSPOSED,
    dropped_in_place("self.dropout"),
)

FAMILIES = Runs.FAMILIES
