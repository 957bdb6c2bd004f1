import numpy as np
from rotary_embedding_torch import RotaryEmbedding


def rotate(x, positions, base=10000.0):
    return RotaryEmbedding(x.shape[-1], theta=base).rotate_queries_or_keys(x)
