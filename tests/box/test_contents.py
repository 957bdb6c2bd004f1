"""Which packages stand in a box, wherever they are installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.box.contents import _package_paths


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


def test_a_package_is_taken_from_the_folder_that_it_is_installed_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As where an environment adds a few packages to a torch that the system has."""
    system, own = tmp_path / "system", tmp_path / "own"
    install(system, "largelib", "smalllib>=1", "unneeded; extra == 'docs'")
    install(system, "unneeded")
    install(own, "smalllib")
    monkeypatch.syspath_prepend(str(system))
    monkeypatch.syspath_prepend(str(own))
    assert set(_package_paths(("largelib",))) == {
        system / "largelib",
        system / "largelib_too.py",
        own / "smalllib",
        own / "smalllib_too.py",
    }


def test_of_a_package_that_is_installed_twice_the_one_that_would_be_imported_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("later", "first"):
        monkeypatch.syspath_prepend(str(install(tmp_path / name, "somelib")))
    assert _package_paths(("somelib",))[0].parent == tmp_path / "first"
