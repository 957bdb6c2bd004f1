"""How a hidden line has to stand in a text to count: what gives a solution away is found, what everybody writes is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyheads.authoring.leaks import leaks
from manyheads.authoring.packages import engine_files
from manyheads.course import Course, load_course
from tests.authoring.knobs import KNOBS


@pytest.fixture
def tiny_copy(tiny_copy: Path) -> Path:
    """With mutants that have lines of their own."""
    (tiny_copy / "grader" / "misconceptions" / "running_mean.py").write_text(KNOBS, encoding="utf-8")
    return tiny_copy


@pytest.fixture
def tiny(tiny_copy: Path) -> Course:
    return load_course(tiny_copy)


SET_OFF = [
    pytest.param("    {}\n", id="alone"),
    pytest.param("# {}\n", id="as a remark"),
    pytest.param("> * {}\n", id="as a quoted item"),
    pytest.param("        hint: {}\n", id="behind a colon"),
    pytest.param("x = 1  # {}\n", id="in a remark behind code"),
    pytest.param("One writes `{}` there.\n", id="in backticks"),
    pytest.param('says("{}", 1)\n', id="in quotes"),
    pytest.param("says('{}', 1)\n", id="in other quotes"),
    pytest.param("x = 1; {}\n", id="behind a semicolon"),
]


@pytest.mark.parametrize("text", [*SET_OFF, pytest.param("We said {}, and were done.\n", id="in a sentence")])
def test_a_line_is_found_wherever_it_stands(tiny: Course, text: str) -> None:
    assert leaks(tiny, {"a.md": text.format("subtotal = source.cumsum(0)").encode()}) == ()
    assert len(leaks(tiny, {"a.md": text.format("total = source.cumsum(0)").encode()})) == 1


def put(folder: Path, name: str, old: str, new: str) -> None:
    path = folder / name
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


LONG = 'mean = total / (seen if count == "so_far" else max(len(x), 1) if count == "all" else 1)'
SOURCE = "solutions/averages/01_running_mean.py"
BANK = "grader/misconceptions/running_mean.py"
LESSON = "# The running mean of 2, 4, 9"


def solving_with(folder: Path, line: str) -> None:
    put(folder, SOURCE, "    ### END SOLUTION", f"    {line}\n    ### END SOLUTION")


def found(folder: Path, text: str) -> bool:
    return bool(leaks(load_course(folder), {"a.md": text.encode()}))


def test_a_line_ends_where_a_word_ends(tiny_copy: Path) -> None:
    solving_with(tiny_copy, "means = x.cumsum(0).mT")
    assert found(tiny_copy, "So means = x.cumsum(0).mT, as we know.\n")
    assert not found(tiny_copy, "So means = x.cumsum(0).mTranspose, as we know.\n")


def test_a_part_of_a_signature_that_students_get_is_no_secret(tiny_copy: Path) -> None:
    line = "numbers_to_average: torch.Tensor = None,"
    put(tiny_copy, BANK, "        mean = ", f"        {line}\n        mean = ")
    assert found(tiny_copy, f"{line}\n")
    put(tiny_copy, SOURCE, "def running_mean(x: torch.Tensor)", f"def running_mean(\n    x: torch.Tensor, {line}\n)")
    assert not found(tiny_copy, f"{line}\n")


def test_a_line_that_the_engine_has_inside_its_own_counts_where_it_is_whole(tiny_copy: Path) -> None:
    line = "hashlib.sha256(content).hexdigest()"
    assert any(f"name: {line} for" in content.decode() for _, content in engine_files(templates=False))
    put(tiny_copy, BANK, "        mean = ", f"        {line}\n        mean = ")
    assert not found(tiny_copy, f"x = {line}\n")
    assert not found(tiny_copy, f"x = 1  # as in `{line}`, say\n")
    assert found(tiny_copy, f"  {line}\n")


def test_a_mutants_line_that_a_lesson_explains_counts_where_it_is_whole(tiny_copy: Path) -> None:
    line = "total = source.cumsum(0)"
    put(tiny_copy, SOURCE, LESSON, f"# Never write {line} here.\n{LESSON}")
    assert not found(tiny_copy, f"Never write {line} here.\n")
    assert found(tiny_copy, f"Never write\n\n    {line}\n")


@pytest.mark.parametrize("line", ["means = x.cumsum(0)", "y = x.cumsum(0) / torch.arange(1, len(x) + 1, out=x)"])
def test_a_solutions_line_counts_also_in_a_lesson(tiny_copy: Path, line: str) -> None:
    solving_with(tiny_copy, line)
    put(tiny_copy, SOURCE, LESSON, f"# Write {line} here.\n{LESSON}")
    assert found(tiny_copy, f"Write {line} here.\n")


def test_a_long_line_of_a_mutant_counts_also_in_a_lesson(tiny_copy: Path) -> None:
    put(tiny_copy, SOURCE, LESSON, f"# Never write {LONG} here.\n{LESSON}")
    assert found(tiny_copy, f"Never write {LONG} here.\n")


SHORT = "y = sums @ tri"


@pytest.mark.parametrize("text", SET_OFF)
def test_a_short_line_of_a_solution_is_found_where_it_is_set_off(tiny_copy: Path, text: str) -> None:
    solving_with(tiny_copy, SHORT)
    assert found(tiny_copy, text.format(SHORT))
    assert not found(tiny_copy, text.format(f"{SHORT} + 1"))


def test_a_short_line_is_not_found_in_a_sentence_or_a_longer_line(tiny_copy: Path) -> None:
    solving_with(tiny_copy, SHORT)
    assert not found(tiny_copy, f"Here {SHORT}, we said.\n{SHORT}.T\n")


@pytest.mark.parametrize(
    "text", [pytest.param("# Never write\n# `{}` here.\n", id="in words"), pytest.param("# - {} + 1\n", id="in a line")]
)
def test_a_short_line_that_a_lesson_has_is_everybodys(tiny_copy: Path, text: str) -> None:
    solving_with(tiny_copy, SHORT)
    put(tiny_copy, SOURCE, LESSON, text.format(SHORT) + LESSON)
    assert not found(tiny_copy, f"{SHORT}\n")


def test_a_short_line_that_three_right_attempts_have_is_everybodys(tiny_copy: Path) -> None:
    solving_with(tiny_copy, SHORT)
    for author in "ab":
        (tiny_copy / "grader" / "right" / "running_mean" / f"{author}.py").write_text(f"{SHORT}\n{SHORT}\n")
    assert found(tiny_copy, f"{SHORT}\n")
    (tiny_copy / "grader" / "right" / "running_mean" / "c.py").write_text(f"    {SHORT}  # the mean\n")
    assert not found(tiny_copy, f"{SHORT}\n")


@pytest.mark.parametrize("line", ["total -= 100.0", "x = x + 1", "else:"])
def test_a_short_line_of_a_mutant_and_what_is_shorter_still_are_not_looked_for(tiny_copy: Path, line: str) -> None:
    put(tiny_copy, BANK, "        mean = ", f"        {line}\n        mean = ")
    if len(line.replace(" ", "")) < 8:
        solving_with(tiny_copy, line)
    assert not found(tiny_copy, f"{line}\n")
