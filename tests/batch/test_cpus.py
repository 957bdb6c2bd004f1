"""Each judge keeps to a CPU of its own where there are as many as judges, and to none where there are not."""

from __future__ import annotations

import multiprocessing
import os

import pytest

from manyheads.batch.cpus import keep_to_one, one_for_each

OURS = sorted(os.sched_getaffinity(0))


def test_as_many_judges_as_cpus_get_one_each():
    assert one_for_each(len(OURS)) == OURS


@pytest.mark.parametrize("others", [-1, 1])
def test_fewer_or_more_share_them_as_the_kernel_likes(others):
    assert one_for_each(len(OURS) + others) == []


def test_processes_started_in_a_row_keep_to_one_each():
    context = multiprocessing.get_context("spawn")
    kept = [keeps_to(context, OURS) for _ in OURS]
    assert sorted(cpu for cpus in kept for cpu in cpus) == OURS


def test_without_cpus_of_their_own_they_go_where_the_kernel_likes():
    assert keeps_to(multiprocessing.get_context("spawn"), []) == set(OURS)


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
