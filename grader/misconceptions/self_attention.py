"""Wrong attempts at one causal head."""

from ._masking import BIAS_BY_DEFAULT, KEYS_NOT_TRANSPOSED, dropped_in_place, each, known
from ._separate_qkv import (
    ATTENTION_FAMILIES,
    INPUT_MUTANTS,
    KNOBS,
    LAYER_MUTANTS,
    WRITTEN_IN_MUTANTS,
    OneHead,
    attention_mutants,
    declared,
)

SIGNATURES = {
    "required": lambda self, d_in, d_out, context_length, dropout, qkv_bias: OneHead.__init__(self, d_in, d_out, context_length, dropout, qkv_bias),
    "renamed": lambda self, d_in, d_out, block_size, p=0.0, bias=False: OneHead.__init__(self, d_in, d_out, block_size, p, bias),
    "bias_first": lambda self, d_in, d_out, context_length, qkv_bias=False, dropout=0.0: OneHead.__init__(self, d_in, d_out, context_length, dropout, qkv_bias),
}  # fmt: skip


def make(**faults):
    """The exercise's names, with these faults."""
    return declared("CausalAttention", OneHead, known(faults, KNOBS), SIGNATURES, "SelfAttention")


MUTANTS = (
    *attention_mutants(("d_in",), ("batch", "square", "everything")),
    *LAYER_MUTANTS,
    *INPUT_MUTANTS,
    *each("hard_coded_shape", "sizes", *({"C": n} for n in (2, 4, 64, 3, 8, 768))),
    *WRITTEN_IN_MUTANTS,
    *each("params_not_registered", "registered", "list", "tensor", "hidden", "forward", "anew"),
    *each("params_extra", "extra", "out_proj", "norm", "temperature"),
    *each("params_extra", "names", ("w_q", "w_k", "w_v"), ("q_proj", "k_proj", "v_proj")),
    ("super_init_missing", {"super_init": False}),
    *each("interface", "interface", "class", "pair", "required", "bias_first", "renamed"),
    BIAS_BY_DEFAULT,
    *each("stub_untouched", "interface", "stub", "silent"),
    KEYS_NOT_TRANSPOSED,
    dropped_in_place("self.dropout"),
)

FAMILIES = ATTENTION_FAMILIES
