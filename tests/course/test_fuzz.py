"""No course.yaml, overrides.yaml or roster is a traceback: each is read, or refused in one sentence that says what to do next."""

import random
from pathlib import Path

import pytest

from manyheads.course import load_course
from manyheads.course.decisions import NAME, Decisions
from manyheads.errors import CourseFault
from manyheads.submission.roster import read_roster

from .conftest import COURSE

ROWS = "- {student: ada, exercise: mean, score: 4, by: X}\n- {student: bela, assignment: averages, due: 2026-12-03 18:00}\n"
ROSTER = "id,name,section,email\nada,Ada Lovelace,A,ada@example.org\nbela,Béla,B,\n"
PARTS = (
    "!!int ''", "!!float x", "!!bool x", "!!timestamp x", "!!binary é", "!!set [a]", "!!omap a", "!!map x", "!x y", "0x_", "0b_",
    "9" * 5000, "1e999", ".inf", ".nan", "9999-12-31 23:58:20 -14:00", "0001-01-01 00:00:00 +14:00", "2026-13-45", "190:20:30",
    "&a [*a]", "*a", "<<: 3", "? [a]\n", "[" * 400, "{", "}", "\"\\ud800\"", "\"\\U00110000\"", "'", "|", "\t", "\0", "\ufeff", "\x85",
    "\r", "null", "~", "-1", "%YAML 3.0\n---\n", "\n---\n", "1: x", "a: b: c", ",,,", "'\"", "=1+1", "../x", "é",
)  # fmt: skip


def changed(text: str, chance: random.Random) -> bytes:
    """The text with one to four values, cuts or bytes of another kind."""
    for _ in range(chance.randint(1, 4)):
        start = chance.randrange(len(text) + 1)
        end = min(len(text), start + chance.choice((0, 0, 1, 5, 20)))
        text = text[:start] + chance.choice(("", " ", *PARTS)) + text[end:]
    return text.encode() if chance.random() < 0.9 else text.encode()[:-1] + bytes([chance.randrange(256)])


def overrides(folder: Path) -> None:
    (folder / "course.yaml").write_text(COURSE)
    Decisions.of_course(load_course(folder))


@pytest.mark.parametrize(("name", "text", "read"), [
    pytest.param("course.yaml", COURSE, lambda folder: Decisions.of_course(load_course(folder)), id="course.yaml"),
    pytest.param(NAME, ROWS, overrides, id="overrides.yaml"),
    pytest.param("roster.csv", ROSTER, lambda folder: read_roster(folder / "roster.csv"), id="a roster"),
])  # fmt: skip
def test_whatever_stands_there_is_read_or_refused_in_a_sentence(tmp_path, name, text, read):
    chance, refused = random.Random(3), []
    for _ in range(60):
        (tmp_path / name).write_bytes(changed(text, chance))
        try:
            read(tmp_path)
        except CourseFault as fault:
            refused.append(str(fault))
    assert len(refused) > 5
    assert [said for said in refused if f"{tmp_path / name}" not in said or "Next: " not in said or "\n" in said] == []
