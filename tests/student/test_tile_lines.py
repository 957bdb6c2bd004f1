"""What `course trace` says of each tile: which queries and keys, and the maximum so far."""

from __future__ import annotations

from dataclasses import replace

import pytest

from manyheads.student.explain_trace import explained
from manyheads.student.follow import Source
from manyheads.student.tile_pictures import tile_lines
from tests.edited import edited
from tests.student.tiled import RECORDED, RIGHT, SCORES, traced


def told(source: str) -> list[str]:
    return list(tile_lines(RECORDED, traced(source)))


def largest(query: int, keys: int) -> str:
    return f"{float(SCORES[query, :keys].max()):.2f}".replace("-", "−")


def test_a_line_for_each_tile_with_the_maximum_of_its_last_query() -> None:
    assert told(RIGHT) == [
        f"tile 1  queries 0–3  keys 0–2  query 3: maximum so far {largest(3, 3)}",
        f"tile 2  queries 0–3  keys 3–5  query 3: maximum so far {largest(3, 6)}",
        f"tile 3  queries 4–6  keys 0–2  query 6: maximum so far {largest(6, 3)}",
        f"tile 4  queries 4–6  keys 3–5  query 6: maximum so far {largest(6, 6)}",
        f"tile 5  queries 4–6  key 6     query 6: maximum so far {largest(6, 7)}",
    ]
    assert explained(RECORDED, traced(RIGHT), Source(())).tiles == tuple(told(RIGHT))


def test_a_tile_of_the_future() -> None:
    lines = told(edited(RIGHT, ("range(0, top + x.shape[-2], columns)", "range(0, T, columns)")))
    assert lines[2] == "tile 3  queries 0–3  key 6     nothing counts for query 3"


def test_other_numbers_than_maxima_are_no_maxima() -> None:
    lines = told(
        edited(
            RIGHT, ("new = torch.maximum(m, scores.amax(-1))", "new = torch.zeros_like(s)"), ("(m - new)", "(m * 0)")
        )
    )
    assert lines[0].endswith("query 3: held against 0.00") or lines[0].endswith("query 3: held against −0.00")


def test_where_no_shares_are_seen_only_the_tiles_are_told() -> None:
    lines = told(edited(RIGHT, ("p = (scores - new[..., None]).exp()", "p = (scores - new[..., None]).relu()")))
    assert lines[0] == "tile 1  queries 0–3  keys 0–2"


@pytest.mark.parametrize(
    "source", ["def summed(q, k, rows, columns): return q @ k.mT\n", "def summed(*args): return 0\n"]
)
def test_one_tile_or_none_is_not_told(source: str) -> None:
    assert told(source) == []
    assert list(tile_lines(replace(RECORDED, tiled=None), traced(RIGHT))) == []
