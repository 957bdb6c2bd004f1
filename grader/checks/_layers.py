"""Decorators for the checks of each layer.

`@layer.values(0.5, "A hint?")` marks a check of the values that is worth half a point.
"""

from functools import partial

from manyheads.checks import Layer, check

shape, finite, causality, values, gradients, hygiene = (
    partial(check, layer=layer) for layer in Layer
)
