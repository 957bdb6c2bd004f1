"""`course init`: write a small complete course to a new folder, with the engine as one file."""

from __future__ import annotations

from pathlib import Path

from ..course import CourseError
from .templates import as_they_are, filled
from .wheel import HASH_FILE, engine_wheel


def init_course(folder: Path, title: str) -> list[Path]:
    """Write the course. Returns the paths of its files.

    Raises CourseError, without having written anything, if the folder contains anything but a git repository.
    """
    if folder.exists() and (not folder.is_dir() or {path.name for path in folder.iterdir()} - {".git"}):
        raise CourseError(f"{folder} is not empty: nothing is written. Next: course init with a new folder's name")
    engine = engine_wheel(templates=True)
    words = {"title": title, "wheel": next(name for name in engine if name != HASH_FILE)}
    files = {**engine, **dict(as_they_are("shared")), **dict(filled("course", words))}
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return [folder / name for name in files]
