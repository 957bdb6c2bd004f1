"""The engine as one wheel is complete, has no content of a course, and is refused if changed."""

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

CONTENT = ("grader/", "solutions/", "exercises/", "tests/", "examples/", ".course/")


def names_in(wheel: bytes) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        return archive.namelist()


@pytest.fixture(scope="module")
def built_wheel(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The wheel that pip builds from this repository, as setuptools makes it."""
    copy = tmp_path_factory.mktemp("repository")
    for name in git(REPOSITORY, "ls-files").splitlines():
        if (REPOSITORY / name).exists() and not name.startswith(("tests/", "exercises/")):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, copy / name)
    assert (copy / "grader" / "checks").is_dir()
    options = "-m pip wheel --quiet --no-deps --no-build-isolation -w out .".split()
    subprocess.run([sys.executable, *options], cwd=copy, check=True)
    return (copy / "out" / WHEEL).read_bytes()


def test_a_built_wheel_holds_the_engine_and_nothing_of_the_course(built_wheel):
    names = names_in(built_wheel)
    assert "manyheads/cli/check.py" in names
    dist_info = f"{WHEEL.removesuffix('-py3-none-any.whl')}.dist-info"
    assert {name.split("/")[0] for name in names} == {"manyheads", dist_info}


def test_the_wheel_that_is_packed_again_holds_what_pip_builds(built_wheel):
    packed = names_in(engine_wheel(templates=True)[WHEEL])
    dist_info = {name for name in names_in(built_wheel) if ".dist-info/" in name}
    assert set(packed) - dist_info == set(names_in(built_wheel)) - dist_info
    assert {Path(name).name for name in dist_info} - {Path(name).name for name in packed} == {
        "top_level.txt"
    }


def test_what_students_get_has_no_templates_and_is_the_same_bytes_every_time():
    files = engine_wheel()
    assert files == engine_wheel()
    names = names_in(files[WHEEL])
    assert not [
        name
        for name in names
        if "/templates/" in name and not name.endswith("templates/__init__.py")
    ]
    assert not [name for name in names if name.startswith(CONTENT)]


def test_pip_refuses_one_that_was_changed(tmp_path):
    """That it installs the one that is named: test_installed_wheel.py."""
    for name, content in engine_wheel().items():
        (tmp_path / name).write_bytes(content)
    digest, remainder = (tmp_path / HASH_FILE).read_text().split(" ", 1)
    (tmp_path / HASH_FILE).write_text(f"{hashlib.sha256(digest.encode()).hexdigest()} {remainder}")
    script = REPOSITORY / "tools" / "install-engine"
    refused = run("sh", script, sys.executable, "", "--target", "here", cwd=tmp_path)
    assert refused.returncode != 0
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in refused.stderr
    assert not (tmp_path / "here").exists()
