"""Invisible characters are removed from text of students, and names stay unchanged."""

import sys
import unicodedata

import pytest

from manyheads.printable_text import visible, visible_line

NAMES = [
    "Zoë Ødegård",
    "Zoe\u0308",  # a combining mark
    "Nguyễn Thị Ánh",
    "עדה לאבלייס",
    "محمد\u200cرضا",  # Persian, with a zero-width non-joiner
    "ශ්\u200dරී ලංකා",  # Sinhala, with a zero-width joiner
    "क्\u200dषमा",
    "李\u3000明",  # with an ideographic blank
    "Anne\u00a0Marie O’Neil",
    "\U0001f469\u200d\U0001f52c",
    "\U00031350",  # a letter that this Python may not know yet
]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_not_changed(name):
    assert visible(name) == visible_line(name) == name


@pytest.mark.parametrize(
    ("text", "expected_line"),
    [
        ("a\x1b[2Jb", "a [2Jb"),
        ("\u202eada", "ada"),
        ("a\u2066b\u2069c\u200f", "abc"),
        ("a\u200bb\ufeffc\u00add", "abcd"),
        ("a\r\nb\tc\x85d\u2028e", "a  b c d e"),
        ("half a smiley \ud83d", "half a smiley  "),
        ("\U000e0041tag", "tag"),
    ],
)
def test_invisible_characters_are_removed(text, expected_line):
    assert visible_line(text) == expected_line


def test_no_character_can_move_the_cursor_or_reverse_a_line():
    text = visible("".join(map(chr, range(sys.maxunicode + 1))))
    control_characters = {
        character
        for character in text
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    }
    assert control_characters == {"\n", "\t", "\u200c", "\u200d"}
    assert visible(text) == text
