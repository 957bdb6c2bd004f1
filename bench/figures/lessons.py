"""Which figure belongs to which lesson."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .cache import kv_cache
from .channels import reshape_dance, weight_split
from .fused import fused_qkv, mha_by_loop
from .head import self_attention
from .practice import cross_attention, grouped_query_attention
from .references import exercise
from .rotation import rotary
from .tile_order import tiled_attention
from .tiles import sdpa_equivalence
from .windows import sliding_window
from .words import attention_scores, causal_mask

FIGURES = {
    "attention_scores": attention_scores,
    "causal_mask": causal_mask,
    "self_attention": self_attention,
    "reshape_dance": reshape_dance,
    "weight_split": weight_split,
    "mha_by_loop": mha_by_loop,
    "fused_qkv": fused_qkv,
    "sdpa_equivalence": sdpa_equivalence,
    "cross_attention": cross_attention,
    "grouped_query_attention": grouped_query_attention,
    "rotary": rotary,
    "kv_cache": kv_cache,
    "sliding_window": sliding_window,
    "tiled_attention": tiled_attention,
}


def place(id_: str) -> Path:
    """Where the figure of an exercise's lesson stands."""
    solution = exercise(id_).solution
    return solution.parent / "figures" / f"{solution.stem}.svg"


def all_figures() -> Iterator[tuple[Path, str]]:
    """Where each figure stands, and the figure as it is drawn now."""
    for id_, draw in FIGURES.items():
        yield place(id_), draw()
