"""Remove invisible characters from text that comes from outside.

An escape character could move a terminal's cursor, and an override could reverse the direction of a
line. The functions are applied both when text is read (a roster, overrides.yaml, a gradebook) and
when it is written (the console, CSV, JSON for Gradescope, pages). So the commands need not do it.
"""

from __future__ import annotations

import unicodedata

# Zero-width non-joiner and joiner: Persian, Hindi, Sinhala and other names are spelt with them.
# They move no other character.
_JOINERS = "\u200c\u200d"
# escapes, lone surrogates, separators of lines and paragraphs
_CONTROLS = {"Cc", "Cs", "Zl", "Zp"}
_FORMATS = "Cf"  # among them the overrides and isolates of a line's direction


def visible(text: str) -> str:
    """Return the text with a blank for each control character, and without format characters.

    Letters of every script, their marks and joiners, blanks of any width, line ends and tabs stay.
    """
    return text if text.isprintable() else "".join(map(_visible_character, text))


def visible_line(text: str) -> str:
    """Return the text as `visible` does, with a blank in place of each line end and tab."""
    return text if text.isprintable() else visible(text).replace("\n", " ").replace("\t", " ")


def _visible_character(character: str) -> str:
    if character.isprintable() or character in _JOINERS or character in "\n\t":
        return character
    category = unicodedata.category(character)
    if category in _CONTROLS:
        return " "
    return "" if category == _FORMATS else character
