"""What `course bench` measures: sizes with arithmetic, and every mistake in course.yaml named when it is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyheads.course import CourseError, load_course
from manyheads.course.plot_and_bench import size_of

ROW = """\
title: Averages
assignments:
  - id: averages
    title: Averages
    exercises:
      - id: mean
        title: The mean
        points: 4
        hint: How many?
        shapes:
          mean: ["(x: (B, T)) -> (B,)", "(x: (B, nh, T)) -> (B, nh)"]
        bench:
          - title: time
            teaches: It grows.
            measures: time
            over: T
            values: [1, 2, 4]
            sizes: {B: 2}
            lines: [{name: all, call: mean}, {name: few, call: mean, sizes: {T: "min(T, 2)", nh: T * 3}}]
"""


@pytest.mark.parametrize(
    ("text", "size"), [(7, 7), ("T", 5), ("T + 1", 6), ("min(T, 3) * hd", 6), ("max(T, 3) - 1", 4), ("nh*hd", 8)]
)
def test_a_size_is_arithmetic_with_names(text: str | int, size: int) -> None:
    assert size_of(text, {"T": 5, "hd": 2, "nh": 4}) == size


@pytest.mark.parametrize("text", ["", "T +", "1.5", "T / 2", "open('x')", "T.real", "min(T)", "'T'", "min(T, key=3)"])
def test_what_is_no_size_is_refused_and_never_run(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size, such as"):
        size_of(text, {"T": 5})


def test_an_unknown_name_is_named() -> None:
    with pytest.raises(ValueError, match="'T_k' names 'T_k', which has no size"):
        size_of("T_k", {"T": 5})


def test_each_line_has_its_own_sizes_at_each_value(tmp_path: Path) -> None:
    (tmp_path / "course.yaml").write_text(ROW)
    (measurement,) = load_course(tmp_path).exercises[0].bench
    every, few = measurement.lines
    assert measurement.known(every, 4) == {"B": 2, "T": 4}
    assert measurement.known(few, 4) == {"B": 2, "T": 2, "nh": 12}


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ("call: mean}, ", "call: median}, ", "time, all: median has no shapes"),
        ("sizes: {B: 2}", "sizes: {}", "time, all: sizes that mean names are missing"),
        ("T * 3", "T / 3", "'T / 3' is not a size"),
        ("[1, 2, 4]", "[1, 4, 2]", "the values of T should grow"),
        ("measures: time", "measures: luck", "'time', 'memory' or 'value'"),
    ],
)
def test_a_mistake_is_named_when_the_file_is_read(tmp_path: Path, right: str, wrong: str, says: str) -> None:
    assert right in ROW
    (tmp_path / "course.yaml").write_text(ROW.replace(right, wrong))
    with pytest.raises(CourseError) as raised:
        load_course(tmp_path)
    assert says in str(raised.value)


WRITES = ROW.replace(
    'mean: ["(x', 'Cached: "(C)(x: (B, T, C), past: opaque) -> (y: (B, T, C), past: opaque)"\n          mean: ["(x'
) + ("        generate: {module: Cached, arguments: {C: C}}\n")


def test_what_writes_with_a_cache_returns_one(tmp_path: Path) -> None:
    (tmp_path / "course.yaml").write_text(WRITES)
    module = load_course(tmp_path).exercises[0].generate
    assert module is not None
    assert (module.module, module.arguments) == ("Cached", {"C": "C"})


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("-> (y: (B, T, C), past: opaque)", "-> (B, T, C)"), ("module: Cached", "module: mean"), ("Cached, ", "Nobody, ")],
)
def test_what_returns_no_cache_cannot_write_with_one(tmp_path: Path, right: str, wrong: str) -> None:
    assert right in WRITES
    (tmp_path / "course.yaml").write_text(WRITES.replace(right, wrong))
    with pytest.raises(CourseError, match="should have shapes that return"):
        load_course(tmp_path)
