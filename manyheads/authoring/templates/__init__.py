"""Templates of the files that `course release --out`, `course init` and `course new` write.

`course verify` also makes wrong attempts from a template. In a text, `@@name` is replaced by a
word; with this mark, the dollars of a Makefile and a workflow are kept. A file or folder whose name
begins with `dot_` gets a name that begins with a dot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template

HERE = Path(__file__).parent


class _Filler(Template):
    delimiter = "@@"


def filled_templates(folder: str, words: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the content of each file of one folder, with these words filled in.

    Raises KeyError if a file needs a word that is not given.
    """
    for name, content in as_they_are(folder):
        yield name, _Filler(content.decode("utf-8")).substitute(words).encode()


def as_they_are(folder: str) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the unchanged content of each file of one folder of templates.

    Paths are relative to the folder, and sorted.
    """
    for path in sorted((HERE / folder).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            name = path.relative_to(HERE / folder).as_posix()
            yield re.sub(r"(^|/)dot_", r"\1.", name), path.read_bytes()
