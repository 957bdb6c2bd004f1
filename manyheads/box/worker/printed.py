"""What an attempt prints, the first characters of it."""

from __future__ import annotations

import contextlib
import io

from .answers import PRINTED_LIMIT
from .text import plain


class Printed(io.TextIOBase):
    """`with contextlib.redirect_stdout(Printed()) as printed: ...`, then `printed.text`."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def writable(self) -> bool:
        """That it can be written to."""
        return True

    def write(self, text: str) -> int:
        """Keep what there is room for."""
        self.text += plain(text, PRINTED_LIMIT - len(self.text))
        return len(text)


def redirected(prints: bool) -> contextlib.AbstractContextManager[Printed | None]:
    """A context that collects what is printed; one that does nothing where nobody asks."""
    return contextlib.redirect_stdout(Printed()) if prints else contextlib.nullcontext()
