"""Property-based tests: any archive, roster or notebook is read, or refused with a message."""

import json
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.files import CourseFault
from manyheads.submission import read_attempt
from manyheads.submission.collect_downloads import collect
from manyheads.submission.intake_journal import to_grade
from manyheads.submission.roster_and_times import read_roster
from tests.make import content, notebook

from .conftest import DANCE, FILE, PLATFORMS, ZIP_MODES, Member, tar_bytes, zip_bytes

bounded_search = settings(derandomize=True, database=None, deadline=None, max_examples=60)
NAMES = ["al1", "x-al1", "Å", "..", "CON", "LATE", "::x", "%s", "Ada Lovelace", "", "a" * 260]
PEOPLE = st.sampled_from([*NAMES, "\u202e", "a\nb"]) | st.text(max_size=9)
EXERCISES = [FILE, "05_weight_split.ipynb", "x.rar", "text.html", f"{FILE}.txt", "x.csv"]
LAYOUTS = [
    *(lay_out(77, "{n}", "{n} {n}").replace(FILE, "{f}") for lay_out in PLATFORMS.values()),
    "{n}_LATE_7_7_{f}",
    "{n}_7_assignfeedback_file_/{f}",
    "{f}",
    "hw_{n}_attempt_9999-99-99-99-99-99.txt",
    "hw1-{n}-main.zip",
    "/{n}/{f}",
    "../{n}/{f}",
    "{n}\\{f}",
    "{n}+a+9999-12-31 23:58:20 +9999+7/{f}",
]
PATHS = st.builds(
    lambda layout, name, file: layout.format(n=name, f=file) or "x",
    st.sampled_from(LAYOUTS),
    PEOPLE,
    st.sampled_from(EXERCISES) | st.text(max_size=9),
)
GRADESCOPE = (
    "submission_77:\n  :submitters:\n  - :name: x\n    :sid: !!int x\n"
    "  :created_at: 9999-12-31 23:58:20 Z\n"
)
TEXTS = [DANCE, "", '{"cells": []}', "(" * 2000, GRADESCOPE, "[[[", "a: &a [*a]"]
CONTENTS = st.sampled_from([text.encode() for text in TEXTS]) | st.binary(max_size=99)


@st.composite
def archives(draw, contents):
    """Draw a zip or tar whose members platforms, students or attackers named; maybe damaged."""
    types = st.sampled_from([tarfile.REGTYPE] * 9 + list(ZIP_MODES))
    members = draw(st.lists(st.builds(Member, PATHS, contents, types, st.just(0)), max_size=6))
    if draw(st.booleans()):
        members.append(Member("submission_metadata.yml", GRADESCOPE))
    pack = draw(st.sampled_from([zip_bytes, tar_bytes]))
    data = bytearray(pack(members))
    for index, byte in draw(st.lists(st.tuples(st.integers(0, 9999), st.integers(0, 255)))):
        data[index % len(data)] = byte
    return bytes(data[: draw(st.sampled_from([None, None, None, len(data) // 2]))])


DOWNLOADS = st.dictionaries(
    st.sampled_from(["ada.zip", "al1.tar", "all.zip", "ada1.zip"]),
    archives(CONTENTS | archives(CONTENTS)) | st.binary(max_size=99),
    min_size=1,
    max_size=3,
)
COLUMNS = st.sampled_from(["id", "name", "email", "login", "group", "Student", "ID", "role"])
CELLS = PEOPLE | st.sampled_from(["1", "7", '"', "id;name"])
TABLES = st.tuples(st.lists(COLUMNS, max_size=5), st.lists(st.lists(CELLS, max_size=5), max_size=5))
ROSTERS = st.binary(max_size=99) | st.builds(
    lambda table, code: "\n".join(map(",".join, [table[0], *table[1]])).encode(code, "replace"),
    TABLES,
    st.sampled_from(["utf-8", "utf-16", "latin-1"]),
)


def read_or_refuse_roster(folder, data):
    """Return the roster with these bytes, or None if it is refused with a next step."""
    (folder / "roster.csv").write_bytes(data)
    try:
        return read_roster(folder / "roster.csv")
    except CourseFault as error:
        assert ". Next: " in str(error)  # noqa: PT017
        return None


@bounded_search
@given(data=ROSTERS)
def test_any_roster_is_read_or_refused(tmp_path_factory, data):
    roster = read_or_refuse_roster(tmp_path_factory.mktemp("any"), data)
    ids = [student.id for student in roster.students] if roster else []
    assert len({*ids}) == len(ids)
    assert not [id_ for id_ in ids if id_ in ("", ".", "..") or "/" in id_]


@pytest.mark.filterwarnings("ignore:Duplicate name")
@bounded_search
@given(downloads=DOWNLOADS, roster_bytes=ROSTERS)
def test_any_archive_writes_only_below_the_output_folder(
    real_course, tmp_path_factory, downloads, roster_bytes
):
    folder = tmp_path_factory.mktemp("any")
    roster = read_or_refuse_roster(folder, roster_bytes)
    for name, data in downloads.items():
        (folder / name).write_bytes(data)
    original, out = content(folder), folder / "out"
    try:
        collected = collect(real_course, [folder / name for name in downloads], out, roster)
        assert all(message.isprintable() for message in (*collected.notes, *collected.not_taken))
        assert all(". Next: " in message for message in collected.not_taken)
        if collected.candidates:
            to_grade(real_course, out, real_course.assignments, ())
    except CourseFault as error:
        assert ". Next: " in str(error)  # noqa: PT017
    files = content(folder)
    assert {name: files[name] for name in original} == original
    assert all(name.startswith("out/") for name in files.keys() - original.keys())
    assert not [path for path in folder.rglob("*") if path.is_symlink()]


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
CELL_KEYS = st.sampled_from(["cells", "cell_type", "source", "code", "markdown", "metadata"])
JSON = st.recursive(
    SCALARS | CELL_KEYS,
    lambda values: st.lists(values, max_size=4) | st.dictionaries(CELL_KEYS, values, max_size=4),
    max_leaves=12,
)
CODE = st.text(alphabet="x=1\n%!?\\'\"([{}]) #:sdef\ud800\0", max_size=40)


@bounded_search
@given(text=st.builds(json.dumps, JSON) | st.builds(notebook, JSON, CODE))
def test_any_notebook_is_read_or_refused(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("any")
    (folder / "01_x.ipynb").write_text(text)
    attempt = read_attempt(folder, "01_x", None, 16)
    assert (attempt.problem == "") == (attempt.text != "")
    assert attempt.problem.isprintable()
