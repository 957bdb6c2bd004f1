"""A roster is read from CSV as people save it, and says in one sentence what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyheads.submission.roster import Roster, RosterError, Student, read_roster


def read(tmp_path: Path, text: str | bytes) -> Roster:
    path = tmp_path / "roster.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_roster(path)


@pytest.mark.parametrize(
    "text",
    [
        "id,name,Canvas ID\nada,Ada Lovelace,12\n",
        "\ufeffid;name;canvas_id\r\nada; Ada Lovelace ;12\r\n\r\n;;\r\n",
        'canvas_id,Notes,ID,name\n12,"a, b",ada,Ada Lovelace\n',
    ],
)
def test_columns_come_in_any_order_and_form(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text).students == (Student("ada", name="Ada Lovelace", canvas_id="12"),)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("name\nAda\n", "has no column `id`", id="no id"),
        pytest.param("", "has no column `id`", id="empty"),
        pytest.param("id\na/b\n", r":2: 'a/b' cannot be a folder's name", id="a slash"),
        pytest.param("id,name\n,Ada\n", r":2: '' cannot be a folder's name", id="no id for one"),
        pytest.param("id\nada\nAda\n", r":3: id 'Ada' stands in line 2, too", id="case alone apart"),
        pytest.param("id\nZo\u00eb\nZoe\u0308\n", r":3: id .* stands in line 2, too", id="Unicode forms"),
        pytest.param("id,email\na,x@y.z\nb,x@y.z\n", r":3: email 'x@y.z' stands in line 2, too", id="one e-mail twice"),
        pytest.param(b"id\nZo\xeb\n", r"is not UTF-8\. Next: save it as CSV in UTF-8", id="Latin-1"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, text: str | bytes, says: str) -> None:
    with pytest.raises(RosterError, match=says) as caught:
        read(tmp_path, text)
    assert ". Next: " in str(caught.value)


def test_no_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        RosterError, match=r"cannot be read \(No such file or directory\)\. Next: give --roster another"
    ):
        read_roster(tmp_path / "none.csv")
