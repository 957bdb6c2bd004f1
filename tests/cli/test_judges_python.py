"""A class repository records the Python version for grading; `course check` prints a note if the
student's Python is newer.
"""

import json

import pytest

from manyheads.submission.newer_python import MANIFEST, PYTHON
from tests.make import RIGHT

NOTE = (
    f"note: attempts are judged with Python 3.9, and this is {PYTHON}: what is newer is not "
    "valid there"
)


@pytest.mark.parametrize(
    ("manifest", "note"),
    [
        pytest.param('{"python": "3.9"}', NOTE, id="an older version"),
        pytest.param(json.dumps({"python": PYTHON}), "", id="the same version"),
        pytest.param('{"python": "3.99"}', "", id="a newer version"),
        pytest.param('{"owner": "@school", "files": {}}', "", id="a manifest without a version"),
        pytest.param('{"python": "3.9; rm"}', "", id="text that is not a version"),
        pytest.param('{"python": 3.9}', "", id="a number"),
        pytest.param("[", "", id="a damaged manifest"),
    ],
)
def test_check_prints_one_note_if_this_python_is_newer_than_the_one_for_grading(
    run_course, student_copy, manifest, note
):
    (student_copy / MANIFEST).parent.mkdir()
    (student_copy / MANIFEST).write_text(manifest, encoding="utf-8")
    (student_copy / "exercises" / "averages" / "01_running_mean.py").write_text(RIGHT)
    completed = run_course("check", cwd=student_copy)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert completed.stdout.count("judged with Python") == bool(note)
    assert note in completed.stdout
