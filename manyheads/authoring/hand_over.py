"""Write a class repository into a folder: completely or not at all, with nothing hidden, and overwriting nobody's work."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from shlex import quote

from ..course import Course
from ..errors import CourseFault
from ..whole import write_whole
from . import history
from .bundle import MANIFEST
from .leaks import Hidden, hidden_of

SET_ASIDE = (".git", ".venv", "__pycache__", ".*_cache", ".course", "results")  # folders that git never shares
AFRESH = "Next: course release --out with a new folder's name, because git keeps it here"


class HandOverError(CourseFault):
    """The class repository may not be written to this folder. The text ends with what to do next."""


@dataclass(frozen=True)
class Earlier:
    """What an earlier release wrote to a folder: the digest of every file, and the owner that it named."""

    files: Mapping[str, str]
    owner: str | None = None

    def holds(self, files: Mapping[str, bytes]) -> bool:
        """Whether it wrote just these files."""
        digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items() if name != MANIFEST}
        return digests == self.files


def earlier_release(folder: Path) -> Earlier:
    """Read the manifest of the folder's last release. Raises HandOverError if the folder contains anything else."""
    if not folder.exists():
        return Earlier({})
    if not folder.is_dir() or folder.is_symlink():
        raise HandOverError(f"{folder} is not a folder. Next: course release --out with a new folder's name")
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return Earlier({str(k): str(v) for k, v in manifest["files"].items()}, str(manifest["owner"]))
    except FileNotFoundError:
        if {path.name for path in folder.iterdir()} <= {".git"}:
            return Earlier({})
        raise HandOverError(
            f"{folder} holds other things than an earlier release: nothing is written. "
            "Next: course release --out with a new folder's name"
        ) from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        raise HandOverError(
            f"{folder / MANIFEST} cannot be read: nothing is written. Next: git -C {quote(str(folder))} checkout {MANIFEST}"
        ) from None


def hand_over(course: Course, folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """Write these files, and remove those that only an earlier release wrote. Returns the paths that changed.

    Raises HandOverError, without having changed anything, if something hidden would be published or was published
    before, or if a file is no longer as it was released: then it is somebody's work.
    """
    earlier = earlier_release(folder)
    _demand_nothing_hidden(hidden_of(course), folder, files)
    for name in sorted({*files, *earlier.files}):
        _demand_unchanged(folder, name, earlier.files.get(name), files.get(name))
    return _write(folder, files, earlier)


def _demand_nothing_hidden(hidden: Hidden, folder: Path, files: Mapping[str, bytes]) -> None:
    """Raise HandOverError if the folder would contain something hidden, or its git history does."""
    for sentence in _leaks(hidden, folder, files):
        raise HandOverError(
            f"{sentence}: nothing is written. Next: take it out, then course release --out {quote(str(folder))}"
        )
    if folder.is_dir() and history.is_repository(folder):
        for sentence in _leaks_in_history(hidden, folder, files):
            raise HandOverError(f"the git history of {folder}{sentence}: nothing is written. {AFRESH}")


def _leaks(hidden: Hidden, folder: Path, files: Mapping[str, bytes]) -> Iterator[str]:
    """A sentence for everything hidden in these files and in the folder's other files."""
    found = (hidden.sentence(name, content) for name, content in files.items())
    yield from filter(None, found)
    for path in _files(folder):
        name = str(path.relative_to(folder))
        if name not in files and (sentence := hidden.sentence(name, path.read_bytes())):
            yield f"{folder}: {sentence}"


def _leaks_in_history(hidden: Hidden, folder: Path, files: Mapping[str, bytes]) -> Iterator[str]:
    """A sentence for everything hidden in the git history, without what `_leaks` has searched already."""
    for name in sorted(history.paths(folder)):
        if sentence := hidden.sentence(name, b""):
            yield f": {sentence}"
    clean = set(files.values())
    for kept in history.all_objects(folder):
        if kept.content not in clean and (sentence := hidden.sentence(kept.path or "a message", kept.content)):
            yield f", object {kept.oid[:12]}: {sentence}"


def _files(folder: Path) -> Iterator[Path]:
    """The folder's regular files, without following links, except folders that git never shares."""
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not any(fnmatch(name, each) for each in SET_ASIDE)]
        yield from (found for name in names if (found := Path(path, name)).is_file() and not found.is_symlink())


def _demand_unchanged(folder: Path, name: str, released: str | None, new: bytes | None) -> None:
    """Raise HandOverError unless the file is absent, as it was released, or as it will be released."""
    path = folder / name
    for part in (path, *path.relative_to(folder).parents):
        if (folder / part).is_symlink():
            raise HandOverError(f"{folder / part} is a link: nothing is written. Next: rm {quote(str(folder / part))}")
    if not path.exists() or name == MANIFEST:
        return
    content = path.read_bytes() if path.is_file() else None
    if content is not None and (content == new or hashlib.sha256(content).hexdigest() == released):
        return
    raise HandOverError(
        f"{path} has changed since it was released: nothing is written, because it may be somebody's work. "
        f"Next: mv {quote(str(path))} elsewhere, then course release --out {quote(str(folder))}"
    )


def _write(folder: Path, files: Mapping[str, bytes], earlier: Earlier) -> list[str]:
    """Write the files, the manifest last, so that an interrupted release can be repeated."""
    others = {name: content for name, content in files.items() if name != MANIFEST}
    changed = [name for name, content in others.items() if _put(folder / name, content)]
    gone = [name for name in sorted(earlier.files.keys() - others.keys()) if (folder / name).exists()]
    for name in gone:
        _remove(folder, Path(name))
    _put(folder / MANIFEST, files[MANIFEST])
    return [*changed, *gone]


def _put(path: Path, content: bytes) -> bool:
    """Write the file if it differs. Returns whether it was written."""
    if path.exists() and path.read_bytes() == content:
        return False
    write_whole(path, content)
    return True


def _remove(folder: Path, name: Path) -> None:
    """Remove a file, and the folders that become empty."""
    (folder / name).unlink()
    for parent in name.parents[:-1]:
        if any((folder / parent).iterdir()):
            return
        (folder / parent).rmdir()
