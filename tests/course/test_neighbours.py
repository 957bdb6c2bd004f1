"""A file's neighbours: what it imports from beside it."""

from __future__ import annotations

from pathlib import Path

from manyheads.course.model import with_neighbours


def test_neighbours_are_those_that_are_imported_whether_directly_or_not(tmp_path: Path) -> None:
    texts = {
        "test_a.py": "from ._shared import x\nfrom . import _other\nimport torch",
        "_shared.py": "from ._below import x",
        "_below.py": "x = 1",
        "_other.py": "from ._shared import x",
        "_unused.py": "",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    found = with_neighbours(tmp_path / "test_a.py")
    assert [path.name for path in found] == ["test_a.py", "_below.py", "_other.py", "_shared.py"]


def test_a_file_that_is_missing_or_no_python_has_none(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("from ._shared import (")
    for name in ("broken.py", "missing.py"):
        assert with_neighbours(tmp_path / name) == [tmp_path / name]
