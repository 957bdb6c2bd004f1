"""What this course has measured: with the references, whose bytes are counted and whose calls are the ones described."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from manyheads.box.worker.execute import execute
from manyheads.box.worker.measuring import measure
from manyheads.box.worker.messages import Build, Call, Measure
from manyheads.checks.local import namespace_of
from manyheads.course import Exercise
from manyheads.course.plot_and_bench import Measurement
from manyheads.student.measure_own import call_of
from tests.student.real import course

MEASURED = [(exercise, each) for exercise in course().exercises for each in exercise.bench]
IDS = [f"{exercise.id}: {each.title}" for exercise, each in MEASURED]


def number(exercise: Exercise, call: Call, memory: bool = False) -> float:
    """What the reference gives: its number, or the bytes that it holds."""
    names = namespace_of(exercise.solution)
    reply = measure(names, Measure(call, memory=True), "a.py") if memory else execute(names, call, "a.py")
    assert reply.raised is None
    tensor = reply.outputs[0].tensor
    assert tensor is not None
    return tensor.item()


def calls(exercise: Exercise, measurement: Measurement, value: int) -> list[Call]:
    return [call_of(exercise, measurement, line, value) for line in measurement.lines]


def of(id_: str) -> tuple[Exercise, Measurement]:
    return next(pair for pair in MEASURED if pair[0].id == id_)


def test_there_is_a_measurement_for_each_thing_that_the_lessons_say() -> None:
    assert [exercise.id for exercise, _ in MEASURED] == [
        "grouped_query_attention",
        "kv_cache",
        "sliding_window",
        "tiled_attention",
    ]


@pytest.mark.parametrize(("exercise", "measurement"), MEASURED, ids=IDS)
def test_the_reference_answers_every_line_at_its_smallest_value(exercise: Exercise, measurement: Measurement) -> None:
    torch.set_num_threads(1)
    for call in calls(exercise, measurement, measurement.values[0]):
        assert execute(namespace_of(exercise.solution), call, "a.py").raised is None


def test_the_cache_halves_with_the_heads_of_keys_and_values() -> None:
    exercise, measurement = of("grouped_query_attention")
    found = [number(exercise, calls(exercise, measurement, value)[0]) for value in (32, 16, 1)]
    assert found == [2 * 32 * 32 * 128 * 8192 * 2, found[0] / 2, found[0] / 32]


def test_with_a_cache_one_token_comes_after_the_others_and_without_all_come_again() -> None:
    exercise, measurement = of("kv_cache")
    with_cache, without = calls(exercise, measurement, 64)
    assert [step.args[0].shape for step in with_cache.steps if isinstance(step.args[0], torch.Tensor)] == [
        (1, 64, 256),
        (1, 1, 256),
    ]
    assert [step.args[0].shape for step in without.steps if isinstance(step.args[0], torch.Tensor)] == [(1, 65, 256)]
    assert isinstance(with_cache.subject, Build)
    assert with_cache.subject.args == (256, 4, 4096)


def test_what_one_token_holds_grows_with_the_text_where_there_is_no_window_and_stops_where_there_is() -> None:
    exercise, measurement = of("sliding_window")
    held = [[number(exercise, call, memory=True) for call in calls(exercise, measurement, T)] for T in (256, 512, 1024)]
    windowed, masked = zip(*held, strict=True)
    assert len(set(windowed)) == 1
    assert masked[2] > 1.8 * masked[1] > 3.2 * masked[0]


def test_tiles_hold_what_grows_with_T_and_the_whole_square_what_grows_with_its_square() -> None:
    exercise, measurement = of("tiled_attention")
    held = [[number(exercise, call, memory=True) for call in calls(exercise, measurement, T)] for T in (128, 256, 512)]
    tiles, square = zip(*held, strict=True)
    assert all(after < 2 * before for before, after in pairwise(tiles))
    assert all(after > 3 * before for before, after in pairwise(square))
    assert square[2] > 2 * 4 * 512**2 * 4  # two matrices of four heads
    assert tiles[2] < 4 * 512**2 * 4
