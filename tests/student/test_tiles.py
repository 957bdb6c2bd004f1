"""Tiles are found in the order in which they are visited, however their scores are computed."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from manyheads.box.worker.messages import Call
from manyheads.student.tiles import Visits, visits_of
from tests.edited import edited
from tests.student.tiled import BOXES, CALL, RECORDED, RIGHT, SCORES, K, Q, T, example_of, traced

PRODUCT = "(x @ y.mT).masked_fill(hidden, -math.inf)"
NEXT = "p = (scores - new[..., None]).exp()"
WAYS = {
    "as it is": RIGHT,
    "queries halved, keys doubled": edited(RIGHT, ("x = q[", "x = 0.5 * q["), ("y = k[", "y = 2 * k[")),
    "einsum": edited(RIGHT, ("x @ y.mT", "torch.einsum('hqd,hkd->hqk', x, y)")),
    "the mask is added": edited(RIGHT, (PRODUCT, "torch.baddbmm(torch.zeros(hidden.shape).masked_fill(hidden, -1e9), x, y.mT)")),
    "the shares are masked": edited(RIGHT, (PRODUCT, "x @ y.mT"), (NEXT, NEXT + ".masked_fill(hidden, 0)")),
    "on its side": edited(RIGHT, (PRODUCT, "(y @ x.mT).masked_fill(hidden.mT, -math.inf)"), ("amax(-1)", "amax(-2)"), (
        "new[..., None]", "new[..., None, :]"), ("p.sum(-1)", "p.sum(-2)")),
    "powers of two": edited(RIGHT, (NEXT, "p = torch.exp2((scores - new[..., None]) * math.log2(math.e))")),
    "one head after the other": edited(RIGHT, ("def summed(", "def one("))
    + "def summed(q, k, rows, columns): return torch.stack([one(a, b, rows, columns) for a, b in zip(q, k)])\n",
    "filled up": edited(RIGHT, ("y = k[..., left : left + columns, :]", "y = torch.cat((k, k[:, :2] * 0), 1)[:, left : left + columns]")),
}  # fmt: skip


def visited(source: str, call: Call = CALL) -> Visits:
    found = visits_of(example_of(call), traced(source, call))
    assert found is not None
    return found


def boxes(found: Visits) -> list[tuple[int, ...]]:
    return [tuple(visit.box) for visit in found.visits]


@pytest.mark.parametrize("way", WAYS)
def test_the_tiles_what_counts_in_them_and_the_running_maximum(way: str) -> None:
    found = visited(WAYS[way])
    assert boxes(found) == BOXES
    assert torch.equal(found.counts, SCORES.isfinite())
    assert not found.cut
    assert torch.allclose(found.scores.float()[found.counts], SCORES[found.counts], atol=1e-4)
    last = found.visits[-1]
    assert last.reference is not None
    assert last.reference[:-1].isnan().all()  # key 6 is hidden from queries 4 and 5
    assert last.total is not None
    lse = float(last.reference[-1] + last.total[-1].log())  # the maximum itself may be one of hidden scores, too
    assert lse == pytest.approx(float(SCORES[-1].logsumexp(-1)), abs=1e-3)


def test_each_tile_is_held_against_the_largest_score_so_far() -> None:
    for visit in visited(RIGHT).visits:
        seen = SCORES[visit.box.top : visit.box.top + visit.box.height, : visit.box.left + visit.box.width].amax(-1)
        assert visit.reference is not None
        shown = ~visit.reference.isnan()
        assert torch.equal(shown, visit.counts.any(-1))
        assert torch.allclose(visit.reference.float()[shown], seen[shown], atol=1e-4)


def test_keys_may_go_first() -> None:
    turned = edited(
        RIGHT,
        ("        m, s = ", "        state[top] = "),
        ("    sums = []\n", "    sums, state = [], {}\n"),
        ("        for left in range(0, top + x.shape[-2], columns):\n", "    for left in range(0, T, columns):\n"
         "        for top in state:\n            x, (m, s) = q[..., top : top + rows, :], state[top]\n"
         "            if left >= top + rows: continue\n"),
        ("            m = new\n        sums.append(m + s.log())", "            state[top] = new, s\n"
         "    sums = [m + s.log() for m, s in state.values()]"),
    )  # fmt: skip
    found = visited(turned)
    assert boxes(found) == [BOXES[i] for i in (0, 2, 1, 3, 4)]
    assert torch.equal(found.counts, SCORES.isfinite())


def test_tiles_of_the_future_are_visits_in_which_nothing_counts() -> None:
    found = visited(edited(RIGHT, ("range(0, top + x.shape[-2], columns)", "range(0, T, columns)")))
    assert boxes(found) == [*BOXES[:2], (0, 6, 4, 1), *BOXES[2:]]
    assert torch.equal(found.counts, SCORES.isfinite())


def test_what_does_not_mask_counts_the_future() -> None:
    found = visited(edited(RIGHT, (".masked_fill(hidden, -math.inf)", "")))
    assert int((found.counts & SCORES.isinf()).sum()) == 3 + 11 + 1 + 2


def test_a_column_that_is_hidden_altogether_does_not_count() -> None:
    itself = edited(
        RIGHT,
        ("hidden = torch.arange(left, left + y.shape[-2]) > ", "hidden = torch.arange(left, left + y.shape[-2]) >= "),
    )
    found = visited(itself.replace("-math.inf)\n            new", "-1e9)\n            new"))
    assert boxes(found) == BOXES
    assert not found.visits[-1].counts.any()
    assert not visited(itself).visits[-1].counts.any()
    unseen = itself.replace(NEXT, NEXT.replace(".exp()", ".relu()"))  # without shares the mask alone tells
    assert not visited(unseen).visits[-1].counts.any()


def test_a_share_too_small_for_a_number_counts_all_the_same() -> None:
    large = Call("summed", (Q * 40, *CALL.args[1:]))
    first = visited(RIGHT, large).visits[2]
    assert first.counts.all()
    assert first.sums is not None
    small = ((Q[0] * 40 @ K[0].mT)[4:, :3]).softmax(-1) == 0
    assert small.any()  # else this shows nothing


def test_maxima_that_stand_in_one_column_are_no_tile() -> None:
    q, k = Q.abs(), K.abs()
    k[:, 1] = 3 * k.amax(1)  # the largest score of every query that sees key 1
    found = visited(RIGHT, Call("summed", (q, k, 4, 3)))
    assert boxes(found) == BOXES
    assert torch.equal(found.counts, SCORES.isfinite())


def test_what_is_computed_beside_the_shares_does_not_count() -> None:
    twice = edited(RIGHT, ("    sums = []\n", "    sums, square = [], q @ k.mT\n"))
    found = visited(twice)
    assert boxes(found) == [(0, 0, T, T), *BOXES]
    assert not found.visits[0].counts.any()
    assert torch.equal(found.counts, SCORES.isfinite())
    assert found.visits[0].block == (0, T)


def test_no_tiles_are_found_where_scores_are_computed_otherwise() -> None:
    away = "def summed(q, k, rows, columns): return q.sum(-1)\n"
    assert visits_of(example_of(), traced(away)) is None
    assert visits_of(replace(RECORDED, tiled=None), traced(RIGHT)) is None


def test_what_is_not_kept_is_told() -> None:
    whole = Call("summed", (*CALL.args[:2], 1, 3))
    found = visits_of(example_of(whole), traced(RIGHT, whole))
    assert found is not None
    assert found.cut
    assert len(found.visits) < 12
