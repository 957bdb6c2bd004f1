"""Wrong attempts at one causal head."""

from ._kept import Keeping
from ._masking import BIAS_BY_DEFAULT, KEYS_NOT_TRANSPOSED, dropped_in_place, each
from ._separate_qkv import (
    ATTENTION_FAMILIES,
    INPUT_MUTANTS,
    LAYER_MUTANTS,
    WRITTEN_IN_MUTANTS,
    Knobs,
    OneHead,
    Silent,
    Stub,
    attention_mutants,
)


def make(**faults):
    """The exercise's names, with these faults; the defaults are right."""

    class CausalAttention(Keeping, OneHead):
        knobs = Knobs(**faults)

    class Required(CausalAttention):
        def __init__(self, d_in, d_out, context_length, dropout, qkv_bias):
            super().__init__(d_in, d_out, context_length, dropout, qkv_bias)

    class Renamed(CausalAttention):
        def __init__(self, d_in, d_out, block_size, p=0.0, bias=False):
            super().__init__(d_in, d_out, block_size, p, bias)

    class BiasFirst(CausalAttention):
        def __init__(self, d_in, d_out, context_length, qkv_bias=False, dropout=0.0):
            super().__init__(d_in, d_out, context_length, dropout, qkv_bias)

    interface = CausalAttention.knobs.interface
    if interface == "class":
        return {"SelfAttention": CausalAttention}
    shapes = {"required": Required, "bias_first": BiasFirst, "renamed": Renamed, "stub": Stub, "silent": Silent}
    return {"CausalAttention": shapes.get(interface, CausalAttention)}


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
