"""Write a picture to a file."""

from __future__ import annotations

from pathlib import Path

from ..errors import CourseFault


def write_picture(path: Path, data: bytes) -> None:
    """Write the file, and make its folder. Raises CourseFault."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise CourseFault(f"{path} cannot be written ({error.strerror}). Next: pass --out FILE.png") from None
