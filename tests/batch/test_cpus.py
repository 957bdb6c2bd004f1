"""Each judge keeps to a CPU of its own where there are as many as judges, and to none where there are not."""

from __future__ import annotations

import multiprocessing
import os

import pytest

from grader.batch.cpus import keep_to_one, one_for_each

OURS = sorted(os.sched_getaffinity(0))


def test_as_many_judges_as_cpus_get_one_each():
    assert one_for_each(len(OURS)) == OURS


@pytest.mark.parametrize("others", [-1, 1])
def test_fewer_or_more_share_them_as_the_kernel_likes(others):
    assert one_for_each(len(OURS) + others) == []


def test_each_process_takes_another_and_one_too_many_takes_none():
    context = multiprocessing.get_context("spawn")
    cpus = context.SimpleQueue()
    for cpu in OURS:
        cpus.put(cpu)
    assert [keeps_to(context, cpus) for _ in range(len(OURS) + 1)] == [*({cpu} for cpu in OURS), set(OURS)]


def keeps_to(context, cpus):
    here, there = context.Pipe()
    process = context.Process(target=say_where, args=(cpus, there))
    process.start()
    found = here.recv()
    process.join()
    return found


def say_where(cpus, line):
    keep_to_one(cpus)
    line.send(os.sched_getaffinity(0))
