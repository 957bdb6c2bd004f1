"""A class repository says with which Python attempts are judged, and check says once where this one
is newer.
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
    ("manifest", "says"),
    [
        pytest.param('{"python": "3.9"}', NOTE, id="older"),
        pytest.param(json.dumps({"python": PYTHON}), "", id="the same"),
        pytest.param('{"python": "3.99"}', "", id="newer"),
        pytest.param('{"owner": "@school", "files": {}}', "", id="of an earlier release"),
        pytest.param('{"python": "3.9; rm"}', "", id="no version"),
        pytest.param('{"python": 3.9}', "", id="a number"),
        pytest.param("[", "", id="damaged"),
    ],
)
def test_check_prints_one_note_if_this_python_is_newer_than_the_one_for_grading(
    run_course, student_copy, manifest, says
):
    (student_copy / MANIFEST).parent.mkdir()
    (student_copy / MANIFEST).write_text(manifest, encoding="utf-8")
    (student_copy / "exercises" / "averages" / "01_running_mean.py").write_text(RIGHT)
    completed = run_course("check", cwd=student_copy)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert completed.stdout.count("judged with Python") == bool(says)
    assert says in completed.stdout
