"""Text from outside without characters that nobody sees: an escape could move a terminal's cursor,
an override turn a line around.

It is applied twice: where text enters (a roster, overrides.yaml, a gradebook), and where it leaves
(the console, CSV, JSON for Gradescope, pages), so that no command has to think of it.
"""

from __future__ import annotations

import unicodedata

# Zero-width non-joiner and joiner: Persian, Hindi, Sinhala and other names are spelt with them.
# They move nothing.
_JOINERS = "\u200c\u200d"
# escapes, halves of surrogate pairs, separators of lines and paragraphs
_CONTROLS = {"Cc", "Cs", "Zl", "Zp"}
_FORMATS = "Cf"  # among them the overrides and isolates of a line's direction


def visible(text: str) -> str:
    """Return a text of several lines, with a blank for each control character, and without those
    that only format.

    Letters of every script, their marks and joiners, blanks of any width, line ends and tabs stay.
    """
    return text if text.isprintable() else "".join(map(_visible_character, text))


def visible_line(text: str) -> str:
    """Return the same as one line."""
    return text if text.isprintable() else visible(text).replace("\n", " ").replace("\t", " ")


def _visible_character(character: str) -> str:
    if character.isprintable() or character in _JOINERS or character in "\n\t":
        return character
    category = unicodedata.category(character)
    if category in _CONTROLS:
        return " "
    return "" if category == _FORMATS else character
