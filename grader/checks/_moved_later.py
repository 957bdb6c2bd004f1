"""Move a module to another device after it has answered once.

Tensors that it keeps from that call have to move, too.
"""

_SOURCE = """
from contextlib import nullcontext

import torch

def around(subject, build):
    of_weights = next((each.dtype for each in subject.parameters()), torch.float32)
    dtypes = {"float": of_weights, "bool": torch.bool}
    subject(*(torch.ones(shape, dtype=dtypes[kind]) for shape, kind in INPUTS))
    subject.to("meta")
    return nullcontext()
"""


def moved_after_a_call(inputs):
    """Return code to put around a call: the module first answers once, and is then moved to "meta".

    Args:
        inputs: tensors of the shapes of the first call's arguments.
    """
    input_specs = [
        (tuple(tensor.shape), "float" if tensor.is_floating_point() else "bool")
        for tensor in inputs
    ]
    return f"INPUTS = {input_specs!r}\n{_SOURCE}"
