"""Which packages and which interpreter stand in a box, wherever they are installed."""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from manyheads.box.contents import _library, _package_paths
from tests.make import run


def install(folder: Path, name: str, *requires: str) -> Path:
    """A distribution of one package and one module, as pip leaves it."""
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").touch()
    (folder / f"{name}_too.py").touch()
    information = folder / f"{name}-1.0.dist-info"
    information.mkdir()
    needs = "".join(f"Requires-Dist: {text}\n" for text in requires)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}")
    (information / "RECORD").write_text(f"{name}/__init__.py,,\n{name}_too.py,,\n../bin/{name},,\n")
    return folder


def test_a_package_is_taken_from_the_folder_that_it_is_installed_in(monkeypatch, tmp_path):
    """As where an environment adds a few packages to a torch that the system has."""
    system, own = tmp_path / "system", tmp_path / "own"
    install(system, "largelib", "smalllib>=1", "unneeded; extra == 'docs'")
    install(system, "unneeded")
    install(own, "smalllib")
    monkeypatch.syspath_prepend(str(system))
    monkeypatch.syspath_prepend(str(own))
    stands = {"largelib": system, "smalllib": own}
    paths = {folder / path for name, folder in stands.items() for path in (name, f"{name}_too.py")}
    assert set(_package_paths(("largelib",))) == paths


def test_of_a_package_that_is_installed_twice_the_one_that_would_be_imported_is_taken(monkeypatch, tmp_path):
    for name in ("later", "first"):
        monkeypatch.syspath_prepend(str(install(tmp_path / name, "somelib")))
    assert _package_paths(("somelib",))[0].parent == tmp_path / "first"


@pytest.mark.parametrize(("shared", "libdir", "expected"), [
    pytest.param(1, "/opt/python/3.12/lib", "/box/python/lib", id="beside it"),
    pytest.param(1, "/opt/python/3.12/lib64", "/box/python/lib64", id="in another folder of it"),
    pytest.param(1, "/install/lib", "/box/python/lib", id="moved after it was built"),
    pytest.param(0, "/opt/python/3.12/lib", "", id="none of its own"),
])  # fmt: skip
def test_an_interpreter_finds_its_library_where_the_box_has_it(monkeypatch, shared, libdir, expected):
    monkeypatch.setattr(sysconfig, "get_config_var", {"Py_ENABLE_SHARED": shared, "LIBDIR": libdir}.get)
    assert _library("/opt/python/3.12") == expected


def test_the_system_s_interpreter_needs_no_telling() -> None:
    assert _library(None) == ""


ANSWERS = """
import pathlib, sys
from manyheads.box.level import Level, open_box
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Call, Load

if __name__ == "__main__":
    with open_box(Level.NAMESPACES, Limits(), pathlib.Path(sys.argv[1])) as box:
        connection = box.attempt(Limits())
        connection.ask(Load("import sys\\ndef f(): return float(sys.hexversion)", "attempt.py"), 20.0)
        print(connection.ask(Call("f"), 20.0).outputs[0].tensor.item() == sys.hexversion)
"""


def interpreters_with_a_library() -> Iterator[str]:
    """Of this very version and installed outside /usr with a libpython of their own, as pyenv and hosted runners have them."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    folders = [*os.get_exec_path(), *map(str, Path.home().glob(".pyenv/versions/*/bin"))]
    says = "import sys, sysconfig; print(sysconfig.get_config_var('Py_ENABLE_SHARED'), sys.base_prefix)"
    for folder in folders:
        if found := shutil.which(name, path=folder):
            done = subprocess.run([found, "-c", says], capture_output=True, text=True, check=False)
            if done.stdout.startswith("1 ") and done.stdout.split() != ["1", "/usr"]:
                yield found


def test_an_interpreter_with_a_library_of_its_own_answers_in_a_box(repository: Path, tmp_path: Path) -> None:
    """With that library's version: the system may have another of the same name."""
    found = next(interpreters_with_a_library(), None)
    if found is None:
        pytest.skip("no Python of this version with a libpython of its own is installed outside /usr")
    packages = os.pathsep.join([str(repository), *(p for p in sys.path if p.endswith("site-packages"))])
    done = run(found, "-c", ANSWERS, tmp_path, PYTHONPATH=packages)
    assert done.stdout == "True\n", done.stderr
