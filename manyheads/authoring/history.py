"""What a git repository could publish: every file, path and message of its branches, tags, notes and stashes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import CourseFault

OTHERS = ("refs/remotes/", "refs/pull/", "refs/merge-requests/")  # fetched from others: pull requests contain attempts


@dataclass(frozen=True)
class GitObject:
    """The content of a file under a path that it had, or the message of a commit or tag."""

    oid: str
    path: str
    content: bytes


def all_objects(folder: Path) -> Iterator[GitObject]:
    """Everything in the branches, tags, notes, stashes and the index.

    Pull requests and branches that were fetched from others are left out. Raises CourseFault.
    """
    tips = _tips(folder)
    named = dict.fromkeys(tips, "")  # a tag's own message
    listed = _git(folder, "rev-list", "--objects", *tips) if tips else b""
    for line in listed.decode("utf-8", "replace").splitlines():
        oid, _, path = line.partition(" ")
        named[oid] = path
    yield from _contents(folder, named | dict(_staged(folder)))


def paths(folder: Path) -> set[str]:
    """Return every path in any commit: one file may have had several."""
    tips = _tips(folder)
    found = _git(folder, "log", "-m", "--format=", "--name-only", "-z", *tips, "--") if tips else b""
    return {path.strip("\n") for path in found.decode("utf-8", "replace").split("\0")} - {""}


def _tips(folder: Path) -> list[str]:
    listed = _git(folder, "for-each-ref", "--format=%(objectname) %(refname)").decode("utf-8", "replace").splitlines()
    kept = {oid for oid, _, name in (line.partition(" ") for line in listed) if not name.startswith(OTHERS)}
    stashes = _git(folder, "stash", "list", "--format=%H")  # only the newest stash is a ref
    detached = _git(folder, "rev-parse", "--verify", "--quiet", "HEAD", may_fail=True)
    return sorted({*kept, *stashes.decode().split(), *detached.decode().split()})


def _staged(folder: Path) -> Iterator[tuple[str, str]]:
    for entry in _git(folder, "ls-files", "--stage", "-z").decode("utf-8", "replace").split("\0"):
        about, _, path = entry.partition("\t")
        if about and not about.startswith("160000"):  # a commit of a submodule
            yield about.split()[1], path


def _contents(folder: Path, named: dict[str, str]) -> Iterator[GitObject]:
    out = _git(folder, "cat-file", "--batch", stdin="".join(f"{oid}\n" for oid in named).encode())
    start = 0
    while start < len(out):
        end = out.index(b"\n", start)
        oid, kind, *size = out[start:end].decode().split()
        if not size:
            raise CourseFault(f"{folder} lacks a part of its history ({oid}). Next: clone it whole, then release again")
        start = end + 1 + int(size[0]) + 1
        if kind != "tree":
            yield GitObject(oid, named[oid], out[end + 1 : start - 1])


def _git(folder: Path, *arguments: str, stdin: bytes = b"", may_fail: bool = False) -> bytes:
    try:
        # Without --no-replace-objects git would hide a replaced object, which it still pushes.
        command = ["git", "--no-replace-objects", "-C", str(folder), *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, check=False)
    except FileNotFoundError:
        raise CourseFault(f"git is needed to look through {folder}. Next: install git") from None
    if done.returncode and not may_fail:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
        raise CourseFault(f"git cannot read {folder} ({said[-1]}). Next: git -C {folder} status")
    return done.stdout
