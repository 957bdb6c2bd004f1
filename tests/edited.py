"""A text with others in place of some of its parts."""

from __future__ import annotations


def edited(text: str, *pairs: tuple[str, str]) -> str:
    """The text with each second of a pair in place of the first, which must be there."""
    for old, new in pairs:
        assert old in text, f"{old!r} is not in the text"
        text = text.replace(old, new)
    return text
