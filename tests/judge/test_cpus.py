"""Each judge gets a CPU of its own where there are as many as judges, and none where there are not."""

import os

import pytest

from manyheads.judge.judge_process import one_for_each

OURS = sorted(os.sched_getaffinity(0))


def test_as_many_judges_as_cpus_get_one_each() -> None:
    assert one_for_each(len(OURS)) == OURS


@pytest.mark.parametrize("others", [-1, 1])
def test_fewer_or_more_share_them_as_the_kernel_likes(others: int) -> None:
    assert one_for_each(len(OURS) + others) == [None] * (len(OURS) + others)
