"""Internal: a test must weaken a box from within. The canary tests a box, and finds each leak."""

import dataclasses
import socket
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from manyheads.box import canary, namespaces, open_box
from manyheads.box.canary import prove, run_canary
from manyheads.box.connection import AttemptEnded, Connection, End
from manyheads.box.contents import Bind, Equipment, _library, _package_paths, contents
from manyheads.box.level_and_device_names import BoxUnavailable, Level
from manyheads.box.worker.limits import Limits
from manyheads.course import load_course
from tests.box.conftest import value_of
from tests.make import TINY

LIMITS = Limits(files_mib=4, processes=16)


def test_the_canary_finds_no_leak_in_the_real_box(box, tmp_path):
    report = run_canary(box, LIMITS, tmp_path)
    assert report.holds, report


@pytest.fixture
def folder_outside_tmp() -> Iterator[Path]:
    """Yield a folder below /var/tmp: an attempt has its own /tmp, so a leak must be elsewhere."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize("link", [False, True], ids=["by its own name", "by a link to it"])
def test_a_course_below_a_bound_folder_is_hidden(folder_outside_tmp, link):
    course = folder_outside_tmp / "lib" / "course"
    course.mkdir(parents=True)
    (course / "answer.py").write_text("the answer")
    (course.parent / "library.py").write_text("no answer")
    course_path = folder_outside_tmp / "link" if link else course
    if link:
        course_path.symlink_to(course)
    equipment = Equipment(binds=(Bind(str(course.parent), "/box/given"),))
    body = "    return torch.tensor([len(os.listdir('/box/given' + p)) for p in ('', '/course')])"
    with namespaces.NamespaceBox(LIMITS, course_path, equipment) as box:
        # library.py and the folder of the course, which is empty in the box
        assert value_of(box, LIMITS, body) == [2, 0]


def bind_in_every_box(monkeypatch: pytest.MonkeyPatch, module: object, bind: Bind) -> None:
    """Add a bind to the contents of a box, as this module sees them."""
    extended = dataclasses.replace(contents(), binds=(*contents().binds, bind))
    monkeypatch.setattr(module, "contents", lambda: extended)


def test_the_canary_finds_a_course_file_in_a_bound_folder(monkeypatch, folder_outside_tmp):
    """Both an equal file of any name and a changed file of the same name are found."""
    course = load_course(TINY)
    check = (TINY / "grader/checks/test_running_mean.py").read_text()
    bind_in_every_box(monkeypatch, namespaces, Bind(str(folder_outside_tmp), "/box/site/another"))
    with open_box(Level.NAMESPACES, LIMITS, TINY) as box:
        for name, text in (("notes.txt", check), ("checks/test_running_mean.py", f"{check}#")):
            planted = folder_outside_tmp / "package" / name
            planted.parent.mkdir(parents=True, exist_ok=True)
            planted.write_text(text)
            with pytest.raises(BoxUnavailable, match="found a file of the course"):
                prove(box, course.limits.for_worker(), course.root, course.hidden_files())
            planted.unlink()


@pytest.mark.parametrize(
    "bind_target", ["", "/box/given"], ids=["at its own path", "at another path"]
)
def test_the_canary_finds_a_bound_course_and_a_writable_folder(
    monkeypatch, folder_outside_tmp, bind_target
):
    original_request, target = namespaces.launch_request, bind_target or str(folder_outside_tmp)
    bind_in_every_box(monkeypatch, canary, Bind(str(folder_outside_tmp), target))

    def weakened_request(*args: object) -> dict:
        request = original_request(*args)
        arguments = request["arguments"]
        read_only = arguments.index("/dev/shm") + 1  # then comes --remount-ro /dev
        bind = ["--ro-bind", f"{{{len(request['sources'])}}}", target]
        arguments[read_only : read_only + 2] = bind
        request["sources"].append(str(folder_outside_tmp))
        return request

    monkeypatch.setattr(namespaces, "launch_request", weakened_request)
    with open_box(Level.NAMESPACES, LIMITS, folder_outside_tmp) as box:
        leaks = run_canary(box, LIMITS, folder_outside_tmp).leaks
    assert {"read a planted secret", "wrote outside /tmp"} <= {*leaks}


@pytest.fixture
def change_attempt_limits(monkeypatch, box) -> Callable[..., None]:
    """Return a function that gives attempts other limits than those that the canary tests."""
    original_attempt = box.attempt

    def change(**changed: int) -> None:
        def attempt(limits: Limits) -> Connection:
            return original_attempt(dataclasses.replace(limits, **changed))

        monkeypatch.setattr(box, "attempt", attempt)

    return change


def test_the_canary_finds_a_missing_limit(change_attempt_limits, box, tmp_path):
    change_attempt_limits(processes=200, files_mib=64)
    assert {*run_canary(box, LIMITS, tmp_path).leaks} >= {
        "started more processes than allowed",
        "filled more disk than allowed",
    }


def test_a_leak_prevents_grading_and_the_message_names_it(change_attempt_limits, box, tiny):
    change_attempt_limits(processes=200)
    with pytest.raises(
        BoxUnavailable, match=r"started more processes than allowed.*Nothing was graded.*Next: "
    ):
        prove(box, tiny.limits.for_worker(), tiny.root, tiny.hidden_files())


@pytest.mark.parametrize("tricks", ["import nothing_of_the_kind\n", "raise KeyError\n"])
def test_a_canary_that_does_not_load_completely_is_an_error(monkeypatch, box, tmp_path, tricks):
    """An exception in a trick, even a failed import, would otherwise count as a box that holds."""
    original_load = canary.Load
    monkeypatch.setattr(
        canary, "Load", lambda source, name: original_load(f"{source}\n{tricks}", name)
    )
    report = run_canary(box, LIMITS, tmp_path)
    assert report.leaks == ()
    assert report.error.startswith("the canary did not answer")


def test_the_message_about_an_ended_canary_names_a_command(monkeypatch, box, tiny):
    for end, command in ((End.BAD_REPLY, "make check"), (End.CRASHED, "course doctor")):
        monkeypatch.setattr(Connection, "ask", Mock(side_effect=AttemptEnded(end, "It ended.")))
        with pytest.raises(
            BoxUnavailable, match=rf"the canary ended early: It ended\.\)\. Next: {command}$"
        ):
            prove(box, tiny.limits.for_worker(), tiny.root, tiny.hidden_files())


def test_the_canary_removes_its_files(monkeypatch, box, tmp_path):
    """Its folders are the course's folder and the folder for temporary files."""
    folders = [tmp_path / "course", tmp_path / "temporary"]
    for folder in folders:
        folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folders[1]))
    planted, honest = [], box.attempt
    monkeypatch.setattr(
        box, "attempt", lambda limits: planted.extend(folders[1].iterdir()) or honest(limits)
    )
    run_canary(box, LIMITS, folders[0])
    assert [path.name.partition("-")[0] for path in planted] == [".canary"]
    assert [list(folder.iterdir()) for folder in folders] == [[], []]


def test_the_canarys_listeners_can_be_reached_from_outside(tmp_path):
    """Otherwise the network tricks could never succeed, and would prove nothing."""
    with canary._planted_secrets(tmp_path) as planted:
        socket.create_connection(("127.0.0.1", planted["tcp"])).close()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(planted["abstract"])


def write_distribution(folder: Path, name: str, *requires: str) -> Path:
    """Write the files of an installed distribution with one package and one module."""
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").touch()
    (folder / f"{name}_too.py").touch()
    information = folder / f"{name}-1.0.dist-info"
    information.mkdir()
    needs = "".join(f"Requires-Dist: {text}\n" for text in requires)
    (information / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}"
    )
    (information / "RECORD").write_text(f"{name}/__init__.py,,\n{name}_too.py,,\n../bin/{name},,\n")
    return folder


def test_a_package_is_bound_from_the_folder_of_its_import(monkeypatch, tmp_path):
    """A virtual environment adds packages to those of the system; smalllib is in both."""
    system, environment = tmp_path / "system", tmp_path / "own"
    write_distribution(system, "largelib", "smalllib>=1", "unneeded; extra == 'docs'")
    for folder, name in ((system, "unneeded"), (system, "smalllib"), (environment, "smalllib")):
        write_distribution(folder, name)
    for folder in (system, environment):
        monkeypatch.syspath_prepend(str(folder))
    folder_of = {"largelib": system, "smalllib": environment}
    paths = {
        folder / path for name, folder in folder_of.items() for path in (name, f"{name}_too.py")
    }
    assert set(_package_paths(("largelib",))) == paths


@pytest.mark.parametrize(
    ("shared", "libdir", "expected"),
    [
        (1, "/opt/python/3.12/lib", "/box/python/lib"),
        (1, "/opt/python/3.12/lib64", "/box/python/lib64"),
        (1, "/install/lib", "/box/python/lib"),
        (0, "/opt/python/3.12/lib", ""),
    ],
    ids=["beside it", "in another folder of it", "moved after it was built", "none of its own"],
)
def test_the_library_path_of_an_interpreter_in_the_box(monkeypatch, shared, libdir, expected):
    """On hosted runners, every test of the box uses such an interpreter."""
    monkeypatch.setattr(
        sysconfig, "get_config_var", {"Py_ENABLE_SHARED": shared, "LIBDIR": libdir}.get
    )
    assert _library("/opt/python/3.12") == expected
    assert _library(None) == "", "the system's interpreter finds its library by itself"
