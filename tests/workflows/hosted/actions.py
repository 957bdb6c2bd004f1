"""Stand-ins for the actions that our workflows use. Each takes the inputs that we give it, and knows no others."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping
from pathlib import Path

from .runner import ActionFailed, Step

VENV = Path(sys.executable).parents[1]
LONG_AGO = 1_000_000_000  # so that make finds the environment newer than what it is made from


def checkout(step: Step) -> None:
    """The repository at a commit or at its default branch. A private one opens with its key alone."""
    given = dict(step.given)
    name = given.pop("repository", step.run.repository.full_name)
    ref, key, path = given.pop("ref", "main"), given.pop("ssh-key", ""), given.pop("path", ".")
    if given != {"persist-credentials": "false"}:
        raise ActionFailed(f"checkout with {given}")
    bare = step.run.service.repositories / f"{name}.git"
    wanted = bare / "deploy-key"
    if (wanted.exists() and wanted.read_text() != key) or not bare.exists():
        raise ActionFailed("Permission denied (publickey).")
    target = step.workspace / path
    target.mkdir(parents=True, exist_ok=True)
    packed = subprocess.run(["git", "-C", bare, "archive", ref], capture_output=True, check=False)
    if packed.returncode:
        raise ActionFailed(packed.stderr.decode())
    subprocess.run(["tar", "-x", "-C", target], input=packed.stdout, check=True)
    (target / ".git").mkdir()  # where a careless checkout would leave its token
    if (target / "Makefile").exists():
        _install(target)


def _install(course: Path) -> None:
    """The environment that `make setup` would take minutes to build: this very one."""
    there = course / ".venv"
    there.mkdir()
    (there / "bin").symlink_to(VENV / "bin")
    for path in course.rglob("*"):
        if path.is_file() and there not in path.parents:
            os.utime(path, (LONG_AGO, LONG_AGO))
    (there / ".ready").touch()


def setup_python(step: Step) -> Mapping[str, str]:
    """A `python` with everything installed, whatever version was asked for."""
    if step.given.keys() != {"python-version"}:
        raise ActionFailed(f"setup-python with {dict(step.given)}")
    step.job.paths.insert(0, str(VENV / "bin"))
    if not (step.workspace / "engine.sha256").exists():
        return {"python-version": "3.12.1"}
    # Everything but our own engine, which is installed here by a link of another kind: the job installs its wheel.
    place = step.job.folder / "python"
    venv.create(place, with_pip=False)
    sites = sysconfig.get_paths(vars={"base": str(place), "platbase": str(place)})
    (Path(sites["purelib"]) / "everything.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    if step.run.quick_pip:
        shutil.copy(Path(__file__).with_name("quick_pip.py"), Path(sites["purelib"]) / "pip.py")
    step.job.paths.insert(0, str(place / "bin"))
    return {"python-version": "3.12.1"}


def upload(step: Step) -> Mapping[str, str]:
    """A folder becomes an artifact: a name is given once in a run, however often that is run again."""
    if step.given.keys() != {"name", "path", "if-no-files-found"} or step.given["if-no-files-found"] != "error":
        raise ActionFailed(f"upload-artifact with {dict(step.given)}")
    source, name = step.workspace / step.given["path"], step.given["name"]
    if not any(path.is_file() for path in source.rglob("*")):
        raise ActionFailed("No files were found with the provided path")
    if list(step.run.artifacts.glob(f"*/{name}")):
        raise ActionFailed("(409) Conflict: an artifact with this name already exists on the workflow run")
    number = str(700 + len(list(step.run.artifacts.glob("*"))))
    shutil.copytree(source, step.run.artifacts / number / name)
    return {"artifact-id": number}


def download(step: Step) -> None:
    """An artifact becomes a folder."""
    if step.given.keys() != {"artifact-ids", "path"} or not step.given["artifact-ids"].isdecimal():
        raise ActionFailed(f"download-artifact with {dict(step.given)}")
    source = next((step.run.artifacts / step.given["artifact-ids"]).glob("*"), None)
    if source is None:
        raise ActionFailed("None of the provided artifact IDs were found")
    shutil.copytree(source, step.workspace / step.given["path"], dirs_exist_ok=True)


def cache(step: Step) -> None:
    """A folder of an earlier run, by its key or the newest whose key begins so; what a job that went well left is kept."""
    given = dict(step.given)
    path, key, start = step.workspace / given.pop("path"), given.pop("key"), given.pop("restore-keys", "\0")
    if given:
        raise ActionFailed(f"cache with {given}")
    caches = step.run.service.repositories.parent / "caches"
    found = sorted(caches.glob("*"), key=lambda each: each.stat().st_mtime_ns)
    known = [each for each in found if each.name == key] or [each for each in found if each.name.startswith(start)]
    if known and not path.exists():
        shutil.copytree(known[-1], path, symlinks=True)
    if key not in {each.name for each in known}:
        step.job.after.append(lambda: shutil.copytree(path, caches / key, symlinks=True))


ACTIONS = {
    "actions/cache": cache,
    "actions/checkout": checkout,
    "actions/setup-python": setup_python,
    "actions/upload-artifact": upload,
    "actions/download-artifact": download,
}
