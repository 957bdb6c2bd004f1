"""The wheel of the engine: it is complete, has no content of a course, and its hash is checked."""

import hashlib
import io
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from manyheads.authoring.class_repository import HASH_FILE, engine_wheel
from tests.authoring.test_class_repository import WHEEL
from tests.make import REPOSITORY, git, run

COURSE_FOLDERS = ("grader/", "solutions/", "exercises/", "tests/", "examples/", ".course/")


def names_in(wheel: bytes) -> list[str]:
    """Return the names of the files in a wheel."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        return archive.namelist()


@pytest.fixture(scope="module")
def built_wheel(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the wheel that pip builds from this repository with setuptools."""
    copy = tmp_path_factory.mktemp("repository")
    for name in git(REPOSITORY, "ls-files").splitlines():
        if (REPOSITORY / name).exists() and not name.startswith(("tests/", "exercises/")):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, copy / name)
    assert (copy / "grader" / "checks").is_dir()
    options = "-m pip wheel --quiet --no-deps --no-build-isolation -w out .".split()
    subprocess.run([sys.executable, *options], cwd=copy, check=True)
    return (copy / "out" / WHEEL).read_bytes()


def test_a_built_wheel_contains_only_the_engine(built_wheel):
    names = names_in(built_wheel)
    assert "manyheads/cli/check.py" in names
    dist_info = f"{WHEEL.removesuffix('-py3-none-any.whl')}.dist-info"
    assert {name.split("/")[0] for name in names} == {"manyheads", dist_info}


def test_engine_wheel_packs_the_same_files_as_pip(built_wheel):
    packed = names_in(engine_wheel(templates=True)[WHEEL])
    dist_info = {name for name in names_in(built_wheel) if ".dist-info/" in name}
    assert set(packed) - dist_info == set(names_in(built_wheel)) - dist_info
    assert {Path(name).name for name in dist_info} - {Path(name).name for name in packed} == {
        "top_level.txt"
    }


def test_the_students_wheel_has_no_templates_and_is_reproducible():
    files = engine_wheel()
    assert files == engine_wheel()
    names = names_in(files[WHEEL])
    assert not [
        name
        for name in names
        if "/templates/" in name and not name.endswith("templates/__init__.py")
    ]
    assert not [name for name in names if name.startswith(COURSE_FOLDERS)]


def test_pip_refuses_a_wheel_with_another_hash(tmp_path):
    """test_installed_wheel.py installs a wheel with the right hash."""
    for name, content in engine_wheel().items():
        (tmp_path / name).write_bytes(content)
    digest, remainder = (tmp_path / HASH_FILE).read_text().split(" ", 1)
    (tmp_path / HASH_FILE).write_text(f"{hashlib.sha256(digest.encode()).hexdigest()} {remainder}")
    script = REPOSITORY / "tools" / "install-engine"
    refused = run("sh", script, sys.executable, "", "--target", "here", cwd=tmp_path)
    assert refused.returncode != 0
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in refused.stderr
    assert not (tmp_path / "here").exists()
