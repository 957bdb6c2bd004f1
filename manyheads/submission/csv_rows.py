"""Read a CSV file that an instructor made, by hand or with a spreadsheet."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import CourseFault

LARGEST = 8 * 1024 * 1024  # bytes of a CSV file


def csv_cells(path: Path, option: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which each row ends, and its cells: the first has the columns' names. Raises CourseFault.

    It is UTF-8, or UTF-16 with its mark, as spreadsheets write it. option: what names the file.
    """
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise CourseFault(f"{path} cannot be read ({error.strerror}). Next: give {option} another file") from None
    if len(data) > LARGEST:
        said = f"{path} is larger than {LARGEST // 1024**2} MiB"
        raise CourseFault(f"{said}. Next: take other columns out, then the same again")
    is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if is_utf16 else "utf-8-sig")
    except UnicodeDecodeError:
        raise CourseFault(f"{path} is not UTF-8. Next: save it as CSV in UTF-8") from None
    rows = csv.reader(io.StringIO(text), delimiter=max(",;\t", key=text.partition("\n")[0].count))
    try:
        for row in rows:
            yield rows.line_num, row
    except csv.Error as error:
        raise CourseFault(f"{path} is not CSV ({error}). {mend(path)}") from None


def csv_rows(path: Path, columns: Sequence[str], option: str, form: str = "") -> Iterator[tuple[str, dict[str, str]]]:
    """Yield where each row stands, and its cells by column. Raises CourseFault, which names the file.

    columns: those that it has to have. option: what names the file. form: a sentence about what its columns are.
    """
    rows = csv_cells(path, option)
    _, header = next(rows, (0, []))
    names = [name.strip().casefold().replace(" ", "_") for name in header]
    if not set(columns) <= set(names):
        wanted = " and ".join(f"`{name}`" for name in columns)
        raise CourseFault(f"{path} has no columns {wanted}.{form} {mend(path)}")
    for line, row in rows:
        if row:
            yield f"{path}:{line}", {name: cell.strip() for name, cell in zip(names, row, strict=False)}


def mend(path: Path) -> str:
    """Return what is to be done next where the file is wrong."""
    return f"Next: mend {path}, then the same command again"
