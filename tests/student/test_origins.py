"""Where each number came from: token and channel, also where it came from the wrong place."""

import pytest

from manyheads.student.origins import OriginBlock
from tests.student.real import Explain

MERGE = "def merge_heads(y): return y.transpose(1, 2).flatten(2)\n"


def table(block: OriginBlock) -> list[list[int | None]]:
    return [[cell.address for cell in row] for row in block.yours]


def test_the_right_split_gives_a_head_its_channels_of_every_token(explain: Explain) -> None:
    picture = explain("reshape_dance")[0].picture
    assert picture.is_right
    assert (picture.argument, [block.title for block in picture.blocks]) == ("x", ["head 0", "head 1"])
    assert table(picture.blocks[1])[:2] == [list(range(6, 12)), list(range(106, 112))]
    assert picture.blocks[0].rows[:2] == ("token 0", "token 1")


def test_the_wrong_view_is_seen(explain: Explain) -> None:
    source = f"def split_heads(x, n_head): B, T, C = x.shape; return x.view(B, n_head, T, -1)\n{MERGE}"
    picture = explain("reshape_dance", source)[0].picture
    assert not picture.is_right
    assert table(picture.blocks[0])[:3] == [list(range(6)), list(range(6, 12)), list(range(12, 18))]
    assert table(picture.blocks[0])[5] == list(range(100, 106))
    assert [all(cell.right for cell in row) for row in picture.blocks[0].yours] == [True, *[False] * 8]
    assert [cell.address for cell in picture.blocks[0].right[1]] == list(range(100, 106))


@pytest.mark.parametrize("id_", ["attention_scores", "fused_qkv"])
def test_what_computes_new_numbers_has_no_picture(explain: Explain, id_: str) -> None:
    assert [told.picture for told in explain(id_) if told.picture] == []


def test_another_shape_has_no_picture(explain: Explain) -> None:
    assert explain("reshape_dance", f"def split_heads(x, n_head): return x\n{MERGE}")[0].picture is None
