"""A mask of a written-in size and a size read off a wrong axis end in the same exception: the size in it tells them apart."""

from __future__ import annotations

import pytest

from tests.diagnosis.told_at_home import checked, exercise

LOOP = """import math
import torch

def mha_by_loop(mha, x):
    B, T, C = x.shape
    later = torch.ones(SIZE, SIZE, device=x.device).triu(1).bool()
    heads = []
    for rows in torch.arange(C).split(mha.head_dim):
        q, k, v = (x @ W[rows].T for W in mha.qkv.weight.split(C))
        scores = (q @ k.mT / math.sqrt(mha.head_dim)).masked_fill(later, -math.inf)
        heads.append(scores.softmax(-1) @ v)
    return mha.proj(torch.cat(heads, dim=-1))
"""


@pytest.mark.parametrize(("size", "named"), [
    pytest.param("T", set(), id="as many as there are tokens"),
    pytest.param("32", {"mask_not_sliced", "hard_coded_shape"}, id="of no axis"),
    pytest.param("1024", {"mask_not_sliced", "hard_coded_shape"}, id="of no axis, and large"),
    pytest.param("mha.head_dim", set(), id="of another axis, which three mistakes may have"),
])  # fmt: skip
def test_a_size_that_the_call_does_not_contain_is_read_off_no_axis(
    monkeypatch: pytest.MonkeyPatch, size: str, named: set[str]
) -> None:
    result = checked(exercise("mha_by_loop"), LOOP.replace("SIZE", size), monkeypatch)
    assert {name for each in result.diagnosis for name in (each.id, *each.alternatives)} == named
    assert result.is_done is (size == "T")
