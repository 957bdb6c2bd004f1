"""Level user: a process under another uid, where root can make no namespaces."""

import os
import stat
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from manyheads.box.level import Box, BoxUnavailable, Level, open_box
from manyheads.box.worker.limits import Limits
from manyheads.course import Course, load_course
from manyheads.judge.isolation_proof import prove
from tests.box.test_attempt_process import answer
from tests.make import copy_course


@pytest.fixture(scope="module")
def user_box() -> Iterator[Box]:
    if os.geteuid():
        pytest.skip("this is not root, which alone can start a process as another user")
    site = Path(sysconfig.get_path("purelib"))
    if not all(each.stat().st_mode & stat.S_IXOTH for each in (site, *site.parents)):
        pytest.skip(f"no other user may enter {site}")
    with open_box(Level.USER, Limits(), Path()) as opened:
        yield opened


@pytest.mark.parametrize(("body", "expected"), [
    pytest.param("    return float(os.getuid() >= 61184 and os.getgroups() == [])", 1.0, id="it owns nothing"),
    pytest.param("    os.setuid(0)", "PermissionError", id="it cannot become root"),
    pytest.param("    import ctypes\n    return float(ctypes.CDLL(None).prctl(39, 0, 0, 0, 0))", 1.0,
        id="no program gives it rights"),
    pytest.param("    open('/etc/shadow')", "PermissionError", id="it cannot read what others may not"),
    pytest.param("    return float('PATH' in os.environ)", 0.0, id="it has no environment of ours"),
    pytest.param("    import numpy, einops\n    return 1.0", 1.0, id="it can import numpy and einops"),
])  # fmt: skip
def test_an_attempt(user_box: Box, body: str, expected: float | str) -> None:
    assert answer(user_box, body) == expected


def test_a_zygote_that_an_attempt_kills_is_replaced(user_box: Box) -> None:
    assert answer(user_box, "    os.kill(os.getppid(), 9)\n    return 1.0") == 1.0
    assert answer(user_box, "    return 2.0") == 2.0


def test_a_course_is_graded_only_where_others_may_not_read_it(user_box: Box, tiny: Course) -> None:
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        course = load_course(copy_course(tiny.root, Path(made, "tiny")))
        course.root.chmod(0o755)
        with pytest.raises(BoxUnavailable, match="read a file of the course"):
            prove(user_box, course)
        course.root.chmod(0o700)
        prove(user_box, course)
