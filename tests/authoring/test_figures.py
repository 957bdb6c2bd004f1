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
FIGURE = re.compile(
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


def names_of(stem: str) -> dict[str, Any]:
    """Run a lesson with its checks and predictions, and return its names; `printed` is what it
    printed.
    """
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        names = runpy.run_path(str(next(ROOT.glob(f"solutions/*/{stem}.py"))), run_name="__main__")
    return {**names, **globals(), "printed": one_line(printed.getvalue())}


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


@pytest.mark.parametrize("lesson", LESSONS)
def test_every_number_in_a_lesson_is_computed_or_cited(lesson):
    text = remaining_text = markdown(LESSONS[lesson])
    rows, names = TABLE[lesson], names_of(LESSONS[lesson].stem)
    exec(rows.get("with", ""), names)
    for row in rows["says"].splitlines():
        sentence = one_line(eval(f"f'''{row}'''", names))
        assert sentence in text + names["printed"], f"the lesson should say: {sentence}"
        remaining_text = remaining_text.replace(sentence, one_line(re.sub(r"\{.*?\}", "", row)))
    for says, source in rows.get("cited", {}).items():
        assert says in text, f"no longer cited: {says}"
        assert source in text, f"the lesson should name the source of {says}: {source}"
        remaining_text = remaining_text.replace(says, "")
    unexplained = set(FIGURE.findall(CITATION.sub("", remaining_text))) - set(
        TABLE["sizes"].strip().split(" | ")
    )
    assert not unexplained, f"neither computed nor cited: {unexplained}"
