"""Numbers in lessons: each one is computed again, or cited with its source, as in figures.yaml."""

import contextlib
import io
import math
import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
LESSONS = {path.stem[3:]: path for path in sorted((ROOT / "solutions").glob("*/*.py"))}
TABLE = YAML(typ="safe").load(Path(__file__).parent / "figures.yaml")
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
NUMBER = re.compile(
    r"\d[\d,]*\.\d+|\d+,\d{3}|\d+e-\d+|\d{3,}|\d+(?= ?%)"
    r"|\d+ (?:ms|[MG]i?B|bytes|million|degrees|rad|layers|sets|steps|tokens|times)\b"
)
CITATION = re.compile(r"\]\([^)]*\)|\b20[12]\d\b|(?:[Ii]ssue|pull request|version) [\d.]+")


def one_line(text: str) -> str:
    """Return a text without its line breaks, with the minus sign that Python writes."""
    return " ".join(text.split()).replace("−", "-")


def markdown(path: Path) -> str:
    """Return the Markdown text of a lesson in one line."""
    cells = path.read_text(encoding="utf-8").split("# %% ")
    prose = "".join(
        cell.removeprefix("[markdown]") for cell in cells if cell.startswith("[markdown]")
    )
    return one_line(re.sub(r"^# ?", "", prose, flags=re.MULTILINE))


def lesson_namespace(stem: str) -> dict[str, Any]:
    """Run the solution of a lesson, and return the names that its calculations may use.

    They are the variables of the lesson, all names of this module, which come first, and `printed`,
    the output of the lesson.
    """
    solution = next(ROOT.glob(f"solutions/*/{stem}.py"))
    with contextlib.redirect_stdout(io.StringIO()) as output:
        variables = runpy.run_path(str(solution), run_name="__main__")
    return {**variables, **globals(), "printed": one_line(output.getvalue())}


def gallery_cell(mistake: str, column: str) -> str:
    """Return the cell for a mistake in the table of docs/gallery.md."""
    lines = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8").splitlines()
    head, *rows = [re.split(r" *\| *", line) for line in lines if line.startswith("|")]
    return next(row for row in rows if mistake in row[1])[head.index(column)].strip("*")


def share(loss: str) -> str:
    """Return the probability of the right character that a loss means."""
    return f"{100 * math.exp(-float(loss)):.0f} %"


def grid(numbers: torch.Tensor) -> str:
    """Return numbers as a lesson prints a table of them."""
    return " ".join(
        "0" if number == 0 else f"{round(number, 2) + 0.0:.2f}"
        for number in numbers.flatten().tolist()
    )


def error_of(call: Callable[[], object]) -> str:
    """Return PyTorch's error message for a call that fails."""
    with pytest.raises(RuntimeError) as caught:
        call()
    return str(caught.value)


def round_off() -> str:
    """Return the size of one rounding of float32, as a power of ten."""
    return f"1e{math.log10(torch.finfo(torch.float32).eps):.0f}"


def count(module: torch.nn.Module) -> int:
    """Return how many parameters a module has."""
    return sum(parameter.numel() for parameter in module.parameters())


def fill_in(row: str, namespace: dict[str, Any]) -> str:
    """Return a row with its calculations replaced by their values, as in an f-string."""
    return one_line(eval(f"f'''{row}'''", namespace))


def without_calculations(row: str) -> str:
    """Return a row without its calculations, but with the numbers that it states itself."""
    return one_line(re.sub(r"\{.*?\}", "", row))


@pytest.mark.parametrize("lesson", LESSONS)
def test_every_number_in_a_lesson_is_computed_or_cited(lesson):
    """A row is a sentence of the lesson that computes its numbers; see the top of figures.yaml.

    The lesson must state each row with these values. Computed and cited numbers are then deleted
    from its text, in which no other number may be left.
    """
    text = remaining_text = markdown(LESSONS[lesson])
    calculations = TABLE[lesson]
    namespace = lesson_namespace(LESSONS[lesson].stem)
    exec(calculations.get("setup_code", ""), namespace)
    for row in calculations["rows"].splitlines():
        sentence = fill_in(row, namespace)
        assert sentence in text + namespace["printed"], f"the lesson should say: {sentence}"
        remaining_text = remaining_text.replace(sentence, without_calculations(row))
    for citation, source in calculations.get("cited", {}).items():
        assert citation in text, f"no longer cited: {citation}"
        assert source in text, f"the lesson should name the source of {citation}: {source}"
        remaining_text = remaining_text.replace(citation, "")
    numbers = set(NUMBER.findall(CITATION.sub("", remaining_text)))
    unexplained = numbers - set(TABLE["numbers_allowed_anywhere"].strip().split(" | "))
    assert not unexplained, f"neither computed nor cited: {unexplained}"
