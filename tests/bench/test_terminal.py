"""The README's picture is what the commands print today, and loads nothing."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # bench is no part of the installed package

from bench.terminal import PICTURE, REPOSITORY, picture
from manyheads.course import load_course
from manyheads.diagnosis import load_bank

pytestmark = pytest.mark.recorded


def test_the_picture_is_what_the_commands_print_today() -> None:
    drawn = PICTURE.read_text(encoding="utf-8")  # a busy machine may not find the wrong line in time
    assert drawn == picture() or drawn == picture(), "Next: python -m bench.terminal"


def test_it_names_the_misconception_and_shows_where_the_numbers_went() -> None:
    course = load_course(REPOSITORY)
    exercise = next(e for e in course.exercises if e.id == "reshape_dance")
    said = " ".join(
        re.sub(r"<style>.*?</style>|<[^>]+>", " ", PICTURE.read_text(encoding="utf-8"), flags=re.DOTALL).split()
    )
    said = said.replace("&#160;", " ")
    assert load_bank(exercise).texts["wrong_view"].title in said
    assert "the right shape, other numbers" in said


def test_it_is_small_and_loads_nothing() -> None:
    text = PICTURE.read_text(encoding="utf-8")
    assert PICTURE.stat().st_size < 80_000
    assert set(re.findall(r"https?://[^\s\"']+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<script|<image|@import|@font-face|href=", text)


def test_the_readme_shows_it_and_says_it_in_words() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    (words,) = re.findall(r"!\[([^\]]+)\]\(docs/wrong-view\.svg\)", readme)
    assert "You viewed straight to (B, n_head, T, head_dim)" in words
