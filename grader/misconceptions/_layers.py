"""Layers of modules with faults.

They are no parameters, have a wrong bias or another name, or are made anew in each call.
"""

import torch
from torch import nn

from ._kept import Keeping
from ._mutants import (
    complete_knobs,
)

# The right value of each knob. `lost` and `biases` are strings: the name of the fault, and the
# names of the layers that have it.
KNOBS = {"lost": "", "biases": "", "renamed": {}, "extra": "", "kept": "nothing"}

# The extra parts of a module by name, made from (the width of its output, its longest context).
EXTRA = {
    "temperature": lambda C, block: nn.Parameter(torch.ones(1)),
    "norm": lambda C, block: nn.LayerNorm(C),
    "positions": lambda C, block: nn.Parameter(torch.zeros(block + 1, C)),
    "query": lambda C, block: nn.Linear(C, C, bias=False),
}


def new_layer(layer):
    """A new layer of the same sizes, dtype and device."""
    return nn.Linear(layer.in_features, layer.out_features, layer.bias is not None).to(layer.weight)


class Layered:
    """Has the layers of the class beside it, with these faults."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        k = self.knobs
        for name in k.biases.split()[1:]:
            layer, how = getattr(self, name), k.biases.split()[0]
            has = {"on": True, "off": False, "flipped": layer.bias is None}[how]
            layer.bias = nn.Parameter(torch.zeros(layer.out_features)) if has else None
        if k.extra:
            last_weight = [*self.parameters()][-1]
            setattr(self, k.extra, EXTRA[k.extra](len(last_weight), getattr(self, "block_size", 0)))
        for old, new in k.renamed.items():
            layer = getattr(self, old)
            delattr(self, old)
            setattr(self, new, layer)
        self.away = {name: getattr(self, name) for name in k.lost.split()[1:]}
        for name in self.away:
            self.lose(k.lost.split()[0], name)

    def lose(self, how, name):
        """Keep a layer in another way.

        With "anew", new layers are used in its place. With "gone" and "list", there is no layer of
        that name.
        """
        layer = getattr(self, name)
        if how == "buffer":
            weight = torch.randn_like(layer._parameters.pop("weight").data) / layer.in_features**0.5
            layer.register_buffer("weight", weight, persistent=False)
            layer.bias = None
        elif how != "anew":
            delattr(self, name)
        if how == "plain":
            object.__setattr__(self, name, layer)
        elif how == "tensor":
            setattr(self, name, layer.weight.detach())

    def forward(self, *args):
        how = self.knobs.lost.split()[:1]
        used = {old: getattr(self, new) for old, new in self.knobs.renamed.items()}
        if how in (["list"], ["gone"], ["anew"]):
            used |= {
                n: (layer if how == ["list"] else new_layer(layer)).to(args[0])
                for n, layer in self.away.items()
            }
        vars(self).update(used)  # attributes are looked up here first
        try:
            return super().forward(*args)
        finally:
            for name in used:
                del vars(self)[name]


def module(name, base, defaults, knobs):
    """Return a class with these faults, under its name."""
    k = complete_knobs(knobs, defaults | KNOBS)
    if "holder" in defaults:
        k.holder_in_use = k.holder
    return {name: type(name, (Keeping, Layered, base), {"knobs": k})}
