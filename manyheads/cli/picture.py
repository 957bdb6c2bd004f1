"""Write a picture where the person asked for it."""

from __future__ import annotations

from pathlib import Path

from ..errors import CourseFault


def write_picture(path: Path, data: bytes) -> None:
    """Write it, and the folders above it. Raises CourseFault."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise CourseFault(f"{path} cannot be written ({error.strerror}). Next: pass --out FILE.png") from None
