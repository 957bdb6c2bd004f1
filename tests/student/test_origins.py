"""Where each number came from: token and channel, also where it came from the wrong place."""

import pytest

from manyheads.student.origins import OriginBlock, OriginPicture
from tests.student.real import Explain

MERGE = "def merge_heads(y): return y.transpose(1, 2).flatten(2)\n"
SPLIT = "def split_heads(x, n_head): return x.unflatten(-1, (n_head, -1)).transpose(1, 2)\n"


def table(block: OriginBlock) -> list[list[int | None]]:
    return [[cell.address for cell in row] for row in block.yours]


def split_picture(explain: Explain, body: str) -> OriginPicture:
    picture = explain("reshape_dance", f"def split_heads(x, n_head):\n    B, T, C = x.shape\n    {body}\n{MERGE}")[
        0
    ].picture
    assert picture is not None
    return picture


def test_the_right_split_gives_a_head_its_channels_of_every_token(explain: Explain) -> None:
    picture = explain("reshape_dance")[0].picture
    assert picture.is_right
    assert (picture.argument, [block.title for block in picture.blocks]) == ("x", ["head 0", "head 1"])
    assert table(picture.blocks[1])[:2] == [list(range(6, 12)), list(range(106, 112))]
    assert picture.blocks[0].rows[:2] == ("token 0", "token 1")


def test_the_wrong_view_is_seen(explain: Explain) -> None:
    picture = split_picture(explain, "return x.view(B, n_head, T, C // n_head)")
    assert not picture.is_right
    assert table(picture.blocks[0])[:3] == [list(range(6)), list(range(6, 12)), list(range(12, 18))]
    assert table(picture.blocks[0])[5] == list(range(100, 106))
    assert [all(cell.right for cell in row) for row in picture.blocks[0].yours] == [True, *[False] * 8]
    assert [cell.address for cell in picture.blocks[0].right[1]] == list(range(100, 106))


def test_interleaved_heads_are_seen(explain: Explain) -> None:
    picture = split_picture(explain, "return x.view(B, T, C // n_head, n_head).permute(0, 3, 1, 2)")
    assert table(picture.blocks[0])[0] == [0, 5, 10, 15, 20, 25]


def test_a_number_of_another_sequence_has_its_batch_in_its_address(explain: Explain) -> None:
    picture = split_picture(explain, "return x.flip(0).view(B, T, n_head, -1).transpose(1, 2)")
    assert table(picture.blocks[0])[1] == list(range(10_100, 10_106))


def test_a_number_that_the_input_does_not_hold_has_no_address(explain: Explain) -> None:
    picture = split_picture(explain, "return x.view(B, T, n_head, -1).transpose(1, 2) * 2")
    assert set(table(picture.blocks[0])[0]) == {None}


def test_the_merge_is_drawn_as_the_channels_of_each_token(explain: Explain) -> None:
    picture = explain("reshape_dance", SPLIT + "def merge_heads(y): return y.reshape(y.shape[0], y.shape[2], -1)\n")[
        1
    ].picture
    assert table(picture.blocks[0])[0] == [*range(6), *range(100, 106), *range(200, 204)]
    assert [cell.address for cell in picture.blocks[0].right[1]] == list(range(100, 116))


@pytest.mark.parametrize("id_", ["attention_scores", "fused_qkv"])
def test_what_computes_new_numbers_has_no_picture(explain: Explain, id_: str) -> None:
    assert [told.picture for told in explain(id_) if told.picture] == []


def test_another_shape_has_no_picture(explain: Explain) -> None:
    assert explain("reshape_dance", f"def split_heads(x, n_head): return x\n{MERGE}")[0].picture is None
