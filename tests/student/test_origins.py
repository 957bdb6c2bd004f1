"""Where each number came from: token and channel, also where it came from the wrong place."""

import pytest

from tests.student.real import Explain

MERGE = "def merge_heads(y): return y.transpose(1, 2).flatten(2)\n"


def test_the_right_split_gives_a_head_its_channels_of_every_token(explain: Explain) -> None:
    first, second = explain("reshape_dance")[0].tables
    assert (first.wrong, second.wrong, first.title, second.title) == ((), (), "head 0", "head 1")
    assert "by its address in x," in first.legend
    assert [row[1] for row in second.rows[:2]] == [list(range(6, 12)), list(range(106, 112))]
    assert [row[0] for row in first.rows[:2]] == ["token 0", "token 1"]


def test_the_wrong_view_is_seen(explain: Explain) -> None:
    source = f"def split_heads(x, n_head): B, T, C = x.shape; return x.view(B, n_head, T, -1)\n{MERGE}"
    first, *_ = explain("reshape_dance", source)[0].tables
    yours = [row[1] for row in first.rows]
    assert yours[:3] == [list(range(6)), list(range(6, 12)), list(range(12, 18))]
    assert yours[5] == list(range(100, 106))
    assert len(first.wrong) == 8
    assert first.rows[1][2] == list(range(100, 106))


@pytest.mark.parametrize(("id_", "source"), [
    ("attention_scores", ""), ("fused_qkv", ""), ("reshape_dance", f"def split_heads(x, n_head): return x\n{MERGE}"),
])  # fmt: skip
def test_what_computes_new_numbers_or_another_shape_has_no_tables(explain: Explain, id_: str, source: str) -> None:
    told = explain(id_, *[source] * bool(source))
    assert [each.tables for each in (told[:1] if source else told) if each.tables] == []
