"""Text that an attempt chose, as plain characters of bounded length: names of types, messages.

A text may be a subclass of str with methods of its own, and may hold half a surrogate pair, which
no encoding can write.
"""

from __future__ import annotations

NAME_LIMIT = 200  # characters of a name: of a type, a parameter, an attribute
WORDS_LIMIT = 4000  # characters of any other text
_NAME = type.__dict__["__name__"].__get__  # past a metaclass that has a __name__ of its own


def plain(text: str, limit: int) -> str:
    r"""Return the first characters of the text; half a surrogate pair is spelled out, as \udce9."""
    start = str.__getitem__(text, slice(limit))
    return start if start.isascii() else start.encode("utf-8", "backslashreplace").decode()[:limit]


def type_name(type_: type) -> str:
    """Return the name of a type."""
    return plain(_NAME(type_), NAME_LIMIT)
