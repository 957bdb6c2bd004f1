"""Read a CSV file that an instructor made, by hand or with a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import CourseFault

LARGEST = 8 * 1024 * 1024  # bytes of a CSV file


def csv_rows(path: Path, columns: Sequence[str], option: str, form: str = "") -> Iterator[tuple[str, dict[str, str]]]:
    """Yield where each row stands, and its cells by column. Raises CourseFault, which names the file.

    columns: those that it has to have. option: what names the file. form: a sentence about what its columns are.
    """
    again = f"Next: mend {path}, then the same command again"
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise CourseFault(
                f"{path} is larger than {LARGEST // 1024**2} MiB. Next: take other columns out, then the same again"
            )
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise CourseFault(f"{path} cannot be read ({error.strerror}). Next: give {option} another file") from None
    except UnicodeDecodeError:
        raise CourseFault(f"{path} is not UTF-8. Next: save it as CSV in UTF-8") from None
    first = text.partition("\n")[0]
    rows = csv.DictReader(io.StringIO(text), delimiter=";" if first.count(";") > first.count(",") else ",")
    try:
        rows.fieldnames = [name.strip().casefold().replace(" ", "_") for name in rows.fieldnames or ()]
        if not set(columns) <= set(rows.fieldnames):
            wanted = " and ".join(f"`{name}`" for name in columns)
            raise CourseFault(f"{path} has no columns {wanted}.{form} {again}")
        for row in rows:
            cells = {name: value.strip() for name, value in row.items() if isinstance(value, str)}
            yield f"{path}:{rows.line_num}", cells
    except csv.Error as error:
        raise CourseFault(f"{path} is not CSV ({error}). {again}") from None
