"""`make setup` builds the virtual environment, or explains in one sentence why it cannot."""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from manyheads.authoring.templates import HERE
from tests.make import REPOSITORY, cases

MAKEFILES = [REPOSITORY / "Makefile", HERE / "class" / "Makefile", HERE / "course" / "Makefile"]
UNREACHABLE = "http://127.0.0.1:9/simple"  # the port "discard", where nothing listens
# with these variables, make prints the name of each folder that it enters
FLAGS_OF_MAKE = {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}


def set_up(folder: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `make setup` in a folder, with this Python and without pip's five retries."""
    without_retries = {"PIP_RETRIES": "0", "PIP_CONFIG_FILE": os.devnull}
    return run_make(
        folder, "setup", f"PYTHON={sys.executable}", *options, **without_retries, **environment
    )


def run_make(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run make in a folder, without a proxy and without flags of the make that runs the tests."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")
    }
    for name in FLAGS_OF_MAKE:
        inherited.pop(name, None)
    command = ["make", *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def setup_folder(makefile: Path, folder: Path) -> Path:
    """Create a folder with this Makefile and the files that `make setup` reads."""
    shutil.copytree(HERE / "shared" / "tools", folder / "tools")
    shutil.copy(makefile, folder)
    shutil.copy(HERE / "shared" / "constraints.txt", folder)
    for name in ("engine.sha256", "pyproject.toml"):
        (folder / name).touch()
    return folder


@pytest.fixture
def class_repository(tmp_path: Path) -> Path:
    """Return a class repository with only the files that `make setup` reads."""
    return setup_folder(HERE / "class" / "Makefile", tmp_path / "class")


@pytest.fixture
def ready_environment(class_repository: Path) -> Path:
    """Return an empty environment that is marked as complete."""
    command = [sys.executable, "-m", "venv", "--without-pip", ".venv"]
    subprocess.run(command, cwd=class_repository, check=True)
    (class_repository / ".venv" / ".ready").touch()
    return class_repository / ".venv"


def test_an_unreachable_package_index_is_an_error_with_a_next_step(class_repository):
    completed = set_up(
        class_repository, f"TORCH_INDEX={UNREACHABLE.replace('//', '//ada:secret@')}"
    )
    assert completed.returncode == 2
    (_, message) = completed.stderr.split("torch could not be installed: ")
    assert message.splitlines()[0] == (
        f"{UNREACHABLE} cannot be reached ([Errno 111] Connection refused). Next: check the "
        "network, then make again; behind a proxy, first export HTTPS_PROXY=http://HOST:PORT"
    )
    assert "secret" not in message


@pytest.fixture
def empty_index(tmp_path: Path) -> Iterator[str]:
    """Yield the address of a package index without packages."""
    (tmp_path / "index" / "simple").mkdir(parents=True)
    serve_folder = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "index"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), serve_folder)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/simple"
    server.shutdown()
    server.server_close()


def test_an_unreachable_proxy_is_an_error_with_a_next_step(class_repository):
    proxy = UNREACHABLE.replace("//", "//ada:secret@").removesuffix("/simple")
    completed = set_up(
        class_repository, "TORCH_INDEX=http://index.example/simple", http_proxy=proxy
    )
    message = completed.stderr.partition("torch could not be installed: ")[2]
    assert message.startswith(
        "http://index.example/simple cannot be reached through the proxy 127.0.0.1:9 ([Errno 111] "
        "Connection refused). Next: check that address, and the user and password for it, then "
        "export HTTP_PROXY=http://HOST:PORT and make again"
    )
    assert "secret" not in message


def test_an_index_without_torch_has_another_message_than_no_index(class_repository, empty_index):
    completed = set_up(class_repository, f"TORCH_INDEX={empty_index}")
    assert completed.returncode == 2
    assert (
        f"torch could not be installed: {empty_index} can be reached, but may have no build for"
        in completed.stderr
    )
    assert (
        "Next: make PYTHON=/path/to/another/python3, or make TORCH_INDEX=URL with another index"
        in completed.stderr
    )


def write_wheel(folder: Path, name: str, requires: str = "") -> Path:
    """Write a wheel with one empty module. requires: lines for its metadata."""
    metadata = (
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nProvides-Extra: editor\n{requires}"
    )
    wheel_metadata = (
        "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    files = {
        f"{name}.py": "",
        f"{name}-1.0.dist-info/METADATA": metadata,
        f"{name}-1.0.dist-info/WHEEL": wheel_metadata,
    }
    files[f"{name}-1.0.dist-info/RECORD"] = "".join(f"{file},,\n" for file in files)
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in files.items():
            wheel.writestr(file, text)
    return path


def hand_out_engine(folder: Path, requires: str) -> None:
    """Put an engine that requires a package into a class repository, and torch beside that."""
    write_wheel(folder.parent, "torch")
    engine = write_wheel(folder, "manyheads", f"Requires-Dist: {requires}\n")
    digest = hashlib.sha256(engine.read_bytes()).hexdigest()
    (folder / "engine.sha256").write_text(f"{digest} {engine.name}\n")
    (folder / "constraints.txt").write_text("torch==1.0\n")


def test_available_packages_are_installed_once(class_repository):
    hand_out_engine(class_repository, "torch")
    completed = set_up(
        class_repository, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(class_repository.parent)
    )
    assert (completed.returncode, completed.stderr) == (0, "")
    assert completed.stdout.endswith("torch is there; now the rest.\n")
    import_both = [class_repository / ".venv" / "bin" / "python", "-c", "import manyheads, torch"]
    assert subprocess.run(import_both, check=False).returncode == 0
    again = set_up(class_repository, PIP_NO_INDEX="1")
    assert again.stdout == "make: Nothing to be done for 'setup'.\n"


def test_a_missing_package_of_the_engine_has_another_message_than_torch(class_repository):
    hand_out_engine(class_repository, "einops")
    completed = set_up(
        class_repository, PIP_INDEX_URL=UNREACHABLE, PIP_FIND_LINKS=str(class_repository.parent)
    )
    assert completed.returncode == 2
    reason = f"What the engine needs could not be installed: {UNREACHABLE} cannot be reached"
    assert reason in completed.stderr


@pytest.mark.parametrize("system", ["Darwin", "Linux"])
def test_a_python_for_intel_macs_is_refused_before_anything_is_built(
    class_repository, tmp_path, system
):
    patched_platform = (
        f'import platform\nplatform.system = lambda: "{system}"\n'
        'platform.machine = lambda: "x86_64"\n'
    )
    (tmp_path / "sitecustomize.py").write_text(patched_platform)
    completed = set_up(class_repository, f"TORCH_INDEX={UNREACHABLE}", PYTHONPATH=str(tmp_path))
    assert completed.returncode == 2  # on Linux, because it has no package index
    is_refused = "This Python is for Macs with an Intel processor" in completed.stderr
    assert is_refused is (system == "Darwin")
    assert (class_repository / ".venv").exists() is (system == "Linux")


def test_a_complete_environment_is_not_built_again(class_repository, ready_environment):
    """Without a package index, to build it would be an error."""
    assert set_up(class_repository, f"TORCH_INDEX={UNREACHABLE}").returncode == 0
    assert (ready_environment / ".ready").exists()


@cases("move", {"moved": shutil.move, "copied": partial(shutil.copytree, symlinks=True)})
def test_a_rebuild_of_the_environment_starts_in_a_moved_or_copied_folder(
    class_repository, ready_environment, tmp_path, move
):
    move(class_repository, tmp_path / "class of 2027")
    completed = set_up(tmp_path / "class of 2027", f"TORCH_INDEX={UNREACHABLE}")
    assert (
        ".venv was built in another folder, and its programs work only there: it is built anew."
        in completed.stdout
    )
    assert completed.returncode == 2  # the rebuild fails in this test: it has no package index


def test_an_environment_of_another_program_is_kept(class_repository):
    """For example, the runner of a workflow links to an environment of its own."""
    (class_repository / ".venv").mkdir()
    (class_repository / ".venv" / ".ready").touch()
    assert set_up(class_repository, f"TORCH_INDEX={UNREACHABLE}").returncode == 0


@pytest.mark.parametrize("makefile", MAKEFILES, ids=lambda path: str(path.parent.name))
def test_every_makefile_checks_whether_its_environment_was_moved(makefile):
    text = makefile.read_text(encoding="utf-8")
    assert 'tools/build-venv $(shell sh tools/moved-venv "$(VENV)")' in text
    assert " FORCE\n" in text


@cases(
    "makefile, options, results",
    {
        "this repository": (MAKEFILES[0], [], "results-examples"),
        "the example of a new course": (MAKEFILES[2], [], "results-examples"),
        "a class": (MAKEFILES[2], ["SUBMITTED=submitted"], "results"),
    },
)
def test_results_of_examples_and_of_a_class_have_different_folders(
    tmp_path, makefile, options, results
):
    grades = commands_of_make(setup_folder(makefile, tmp_path / "course"), "grade", *options)
    submitted = options[0].partition("=")[2] if options else "examples/submitted"
    assert f".venv/bin/course grade {submitted} --out {results}\n" in grades


@pytest.mark.parametrize("makefile", MAKEFILES, ids=lambda path: str(path.parent.name))
def test_make_clean_keeps_the_results_of_a_class(tmp_path, makefile):
    removal = commands_of_make(setup_folder(makefile, tmp_path / "course"), "clean")
    assert removal.startswith("rm -rf .venv")
    assert "results" not in removal.split()


def commands_of_make(folder: Path, *arguments: str) -> str:
    """Return the commands that make would run."""
    completed = run_make(folder, "--dry-run", "PYTHON=python3", *arguments)
    assert completed.returncode == 0, completed.stderr
    return completed.stdout
