"""Any file at all: reading an attempt gives text, or one plain sentence, and never an exception."""

import json
import tempfile
import unicodedata
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from manyheads.submission import AttemptSource, read_attempt

FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
STEM = "01_running_mean"
TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=60)  # half characters too
LINES = st.sampled_from([
    "%%bash", "!ls", "x = !ls", "x = %time 1", "?int", "int?", "%matplotlib", "a = 1", "\\", "%", "'''", "\x0c", "%%",
])  # fmt: skip
CODE = st.one_of(TEXT, st.lists(LINES, max_size=6).map("\n".join))
FIELDS = {
    "cell_type": st.sampled_from(["code", "markdown", "raw", 1, None]),
    "source": st.one_of(CODE, st.lists(CODE, max_size=4), st.integers(), st.none(), st.lists(st.lists(st.none()))),
    "metadata": st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2),
}
CELL = st.fixed_dictionaries({}, optional=FIELDS)
SINGLE = st.none() | st.booleans() | st.floats() | st.integers() | TEXT
JSON = st.recursive(SINGLE, lambda inner: st.lists(inner, max_size=4), max_leaves=6)
PLAIN = st.text(st.characters(codec="utf-8", exclude_characters="\0\r!%?"), max_size=30)


def assert_text_or_sentence(attempt: AttemptSource) -> None:
    """Text that can be written, or one line that says why not; and a digest either way."""
    attempt.source.encode("utf-8")
    assert "\0" not in attempt.source
    assert len(attempt.digest) == 64
    assert not (attempt.problem and attempt.source)
    assert len(attempt.problem) <= 300
    assert not any(unicodedata.category(c)[0] == "C" for c in attempt.problem)


def read(name: str, data: bytes) -> AttemptSource:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(data)
        return read_attempt(Path(folder), STEM, None, 64)


@FUZZ
@given(st.binary(max_size=300), st.sampled_from([f"{STEM}.py", f"{STEM}.ipynb"]))
@example(b"\xef\xbb\xbf", f"{STEM}.py")
@example(b"\xff\xfe", f"{STEM}.py")
@example(b"\xed\xa0\x80", f"{STEM}.py")
@example(b"[" * 60_000, f"{STEM}.ipynb")
@example(b'{"cells":' * 6_000, f"{STEM}.ipynb")
@example(b"1" * 60_000, f"{STEM}.ipynb")
@example(b"NaN", f"{STEM}.ipynb")
def test_any_bytes(data, name):
    assert_text_or_sentence(read(name, data))


@FUZZ
@given(st.lists(CELL, max_size=5) | JSON)
@example([{"cell_type": "code", "source": "x = '\ud800'"}])
@example([{"cell_type": "code", "source": "x = '\0'"}])
@example([{"cell_type": "code", "source": ["%%bash\n", "rm -rf /"]}])
@example([{"cell_type": "code", "source": "-" * 50_000 + "1"}])
@example([{"cell_type": "code", "source": "a" + ".b" * 20_000}])
@example([{"cell_type": "code", "source": "(" * 20_000}])
def test_any_cells(cells):
    assert_text_or_sentence(read(f"{STEM}.ipynb", json.dumps({"cells": cells}).encode()))


@FUZZ
@given(st.lists(PLAIN, min_size=1, max_size=5))
def test_a_file_that_is_text_is_read_as_it_is(lines):
    text = "\n".join(lines)
    attempt = read(f"{STEM}.py", text.encode("utf-8"))
    assert attempt.problem == ""
    assert attempt.source == text.removeprefix("\ufeff")
