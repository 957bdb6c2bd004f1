"""Files of authors that are not in UTF-8 are named before anything reads them."""

import pytest

SOURCES = {
    "solution": "solutions/averages/01_running_mean.py",
    "checks": "grader/checks/test_running_mean.py",
    "bank": "grader/misconceptions/running_mean.py",
    "right": "grader/right/running_mean/loop.py",
    "wrong": "grader/wrong/running_mean/median.py",
}


@pytest.mark.parametrize("command", ["release", "verify"])
@pytest.mark.parametrize("name", SOURCES.values(), ids=SOURCES.keys())
def test_a_source_in_latin_1_is_named_with_its_line(run_course, tiny_copy, name, command):
    path = tiny_copy / name
    text = path.read_bytes()
    path.write_bytes(text + b"# by M\xfcller\n")
    refused = run_course(command, cwd=tiny_copy)
    line = text.count(b"\n") + 1
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"course: {path}:{line}: is not UTF-8 (byte {len(text) + 6})")
    assert refused.stderr.endswith("Next: mend that line, then the same command again\n")
