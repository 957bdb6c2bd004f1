"""The figure of the KV cache (04 of the second assignment): what each call brings, keeps and may see."""

from __future__ import annotations

import torch

from .drawing import Drawing
from .references import reference

_CALLS = (3, 1, 2)  # how many tokens each call brings
_CELL = 26


def kv_cache() -> str:
    """The cache as it grows, and below it the mask of each call's queries."""
    _assert_as_one_call()
    told = "; ".join(f"call {n} brings {T} and finds {P}" for n, (P, T) in enumerate(_spans(), 1))
    drawn = Drawing(
        "The cache grows, and the mask stands in its lower right corner",
        f"Three calls: {told}. In each, a query sees all cached keys and those of its own chunk up to itself: of the last "
        "call, whose queries stand at positions 4 and 5, the first sees the keys 0 to 4 and the second 0 to 5.",
    )
    drawn.text(8, 20, "Keys: cached, and new in this call", "bold", "start")
    drawn.cell(8, 30, 18, 14, "b")
    drawn.text(32, 42, "cached", "small", "start")
    drawn.cell(92, 30, 18, 14, "a")
    drawn.text(116, 42, "new", "small", "start")
    drawn.cell(160, 30, 18, 14, "hatched")
    drawn.text(184, 42, "not to be seen", "small", "start")
    y = 66
    for n, (P, T) in enumerate(_spans(), 1):
        drawn.text(8, y + 4, f"call {n}: {T} {'query' if T == 1 else 'queries'}", "bold", "start")
        for j in range(P + T):
            drawn.cell(112 + j * _CELL, y + 12, _CELL, 22, "b" if j < P else "a", str(j))
        drawn.text(106, y + 28, "keys", "small", "end")
        for i in range(T):
            drawn.text(106, y + 54 + i * 22, f"query {P + i}", "small", "end")
            for j in range(P + T):
                drawn.cell(112 + j * _CELL, y + 40 + i * 22, _CELL, 22, "s2" if j <= P + i else "hatched")
        drawn.frame(112 + P * _CELL, y + 40, T * _CELL, T * 22)
        y += 40 + T * 22 + 28
    drawn.text(8, y - 4, "Framed: the chunk with itself. Its triangle", "small", "start")
    drawn.text(8, y + 13, "begins where the cache ends.", "small", "start")
    return drawn.svg(y + 24)


def _spans() -> list[tuple[int, int]]:
    """For each call how many tokens it finds, and how many it brings."""
    return [(sum(_CALLS[:n]), T) for n, T in enumerate(_CALLS)]


def _assert_as_one_call() -> None:
    """The reference gives these calls what it gives a single one."""
    layer = reference("kv_cache", "CachedSelfAttention")(4, 2, sum(_CALLS))
    text, cache, parts = torch.randn(1, sum(_CALLS), 4), None, []
    with torch.no_grad():
        for chunk in text.split(list(_CALLS), dim=1):
            y, cache = layer(chunk, cache)
            parts.append(y)
        assert torch.allclose(torch.cat(parts, dim=1), layer(text)[0], atol=1e-5), "the calls are one text"
