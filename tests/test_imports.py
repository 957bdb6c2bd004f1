"""Modules of the engine import in one direction, and tests import only interfaces of packages.

The *interface* of a package is its `__init__`, and each of its modules that a module of another
package imports. Its other modules, and names that begin with an underscore, are internal.
"""

import ast
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import pytest

ENGINE = Path(__file__).parents[1] / "manyheads"
TESTS = Path(__file__).parent
# Tests of internals make refactoring harder, so only a few files may contain them.
MAX_FILES_WITH_INTERNALS = 30
# A package may import only from the packages before it.
PACKAGES = (
    "printable_text",
    "files",
    "result",
    "box.worker",
    "box",
    "course",
    "submission",
    "checks",
    "diagnosis",
    "judge",
    "student",
    "report",
    "authoring",
    "platforms",
    "notebook",
    "cli",
    "__main__",
)


def modules(root: Path) -> dict[str, Path]:
    """Return the paths of a package's modules by their dotted names."""
    paths = {}
    for path in sorted(root.rglob("*.py")):
        if "templates" in path.parts:  # the files of a new course are not modules
            continue
        segments = (root.name, *path.relative_to(root).with_suffix("").parts)
        paths[".".join(segments).removesuffix(".__init__")] = path
    return paths


def imported_modules(name: str, path: Path, paths: dict[str, Path]) -> set[str]:
    """Return the modules of `paths` that a module imports, at its top or within a function."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = resolve_name(
                "." * node.level + (node.module or ""), package if node.level else None
            )
            names.update(
                inner if (inner := f"{source}.{alias.name}") in paths else source
                for alias in node.names
            )
    return names & paths.keys() - {name}


def import_cycle(root: Path) -> list[str]:
    """Return a cycle of imports, each module before one that it imports, or an empty list."""
    paths = modules(root)
    try:
        TopologicalSorter(
            {name: imported_modules(name, path, paths) for name, path in paths.items()}
        ).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle
    return []


def package_of(name: str) -> str:
    """Return the package of a module, e.g. box.worker for manyheads.box.worker.wire."""
    segments = name.split(".")[1:]
    return "box.worker" if segments[:2] == ["box", "worker"] else segments[0]


def upward_imports(root: Path, packages: tuple[str, ...]) -> list[str]:
    """Return every import of a module from a later package."""
    paths = modules(root)
    violations = []
    for name, path in paths.items():
        if name == root.name:  # the engine itself is in no package
            continue
        for target in sorted(imported_modules(name, path, paths) - {root.name}):
            if packages.index(package_of(target)) > packages.index(package_of(name)):
                violations.append(f"{name} imports {target}")
    return violations


def interface_modules(root: Path) -> set[str]:
    """Return the modules below `root` that tests may import without a reason."""
    paths = modules(root)
    interface = {name for name in paths if name.count(".") == 1}
    interface.add(f"{root.name}.cli.app")  # the command-line program, which no module imports
    for name, path in paths.items():
        package = name.split(".")[1:2]
        targets = imported_modules(name, path, paths)
        interface |= {target for target in targets if target.split(".")[1:2] != package}
    return interface


def internal_imports(test: Path, root: Path, interface: set[str]) -> list[str]:
    """Return the internal names that a test file imports, each as `module.name`."""
    paths = modules(root)
    internal = []
    for node in ast.walk(ast.parse(test.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or node.level or node.module is None:
            continue
        for alias in node.names:
            full_name = f"{node.module}.{alias.name}"
            module = full_name if full_name in paths else node.module
            is_private = alias.name.startswith("_")
            if module in paths and (module not in interface or is_private):
                internal.append(full_name)
    return internal


def files_of_tests() -> list[Path]:
    """Return the Python files of tests/, without the courses that tests work on."""
    courses = {"tiny_course", "courses"}
    return [path for path in TESTS.rglob("*.py") if not courses & {*path.parts}]


def gives_reason(test: Path) -> bool:
    """Tell whether the first line of a test file says why it imports something internal."""
    return test.read_text(encoding="utf-8").startswith('"""Internal: ')


def test_few_test_files_import_internals_and_each_says_why() -> None:
    interface = interface_modules(ENGINE)
    imports = {test: internal_imports(test, ENGINE, interface) for test in files_of_tests()}
    internal_names = {test.relative_to(TESTS): names for test, names in imports.items() if names}
    without_reason = {
        test: names for test, names in internal_names.items() if not gives_reason(TESTS / test)
    }
    assert without_reason == {}, 'begin the docstring with "Internal: " and the reason'
    assert len(internal_names) <= MAX_FILES_WITH_INTERNALS, sorted(map(str, internal_names))


def test_a_reason_is_given_only_for_an_internal_import() -> None:
    interface = interface_modules(ENGINE)
    tests = [test for test in files_of_tests() if gives_reason(test)]
    assert [test for test in tests if not internal_imports(test, ENGINE, interface)] == []


@pytest.mark.parametrize(
    ("line", "internal"),
    [
        pytest.param("from engine.box import a", [], id="a module that another package imports"),
        pytest.param("from engine.box.a import x", [], id="a name of an interface module"),
        pytest.param("from engine.box.a import _x", ["engine.box.a._x"], id="a private name"),
        pytest.param(
            "from engine.box import b",
            ["engine.box.b"],
            id="a module used only in its package",
        ),
        pytest.param(
            "from engine.box.b import x", ["engine.box.b.x"], id="a name of an internal module"
        ),
    ],
)
def test_an_internal_import_is_detected(tmp_path: Path, line: str, internal: list[str]) -> None:
    root = tmp_path / "engine"
    for name, text in {
        "box/a": "from . import b",
        "box/b": "",
        "judge/c": "from ..box import a",
    }.items():
        path = root / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    test = tmp_path / "test_it.py"
    test.write_text(line)
    assert internal_imports(test, root, interface_modules(root)) == internal


def test_no_package_imports_from_a_later_one() -> None:
    assert upward_imports(ENGINE, PACKAGES) == []


def test_an_import_from_a_later_package_is_detected(tmp_path: Path) -> None:
    folder = tmp_path / "engine"
    for name, text in {
        "box": "",
        "judge": "from ..box import a",
        "report": "from ..judge import a",
    }.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "a.py").write_text(text)
    assert upward_imports(folder, ("box", "judge", "report")) == []
    assert upward_imports(folder, ("box", "report", "judge")) == [
        "engine.report.a imports engine.judge.a"
    ]


def test_the_engine_has_no_import_cycle() -> None:
    assert len(modules(ENGINE)) > 100  # otherwise the search for modules is broken
    assert import_cycle(ENGINE) == []


@pytest.mark.parametrize(
    ("source_a", "source_b"),
    [
        pytest.param("from .b import x", "from . import a", id="two modules"),
        pytest.param(
            "import engine.b", "def f():\n    from .a import y", id="one import within a function"
        ),
    ],
)
def test_an_import_cycle_is_detected(tmp_path: Path, source_a: str, source_b: str) -> None:
    folder = tmp_path / "engine"
    folder.mkdir()
    for name, text in {"__init__": "", "a": source_a, "b": source_b}.items():
        (folder / f"{name}.py").write_text(text)
    assert set(import_cycle(folder)) == {"engine.a", "engine.b"}


def helper_files(paths: list[Path]) -> dict[str, list[str]]:
    """Return the helper functions at module level, each with the files that define it."""
    files: dict[str, list[str]] = {}
    for path in paths:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if not node.name.startswith(("test_", "pytest_")):
                files.setdefault(node.name, []).append(str(path))
    return files


def test_no_helper_is_defined_in_two_files() -> None:
    tests = [path for path in files_of_tests() if "attempts" not in path.parts]
    files = helper_files(tests)
    assert len(files) > 500  # otherwise the search for helpers is broken
    assert {name: paths for name, paths in files.items() if len(paths) > 1} == {}


def test_no_two_modules_have_the_same_name() -> None:
    names = Counter(path.name for path in modules(ENGINE).values() if path.name != "__init__.py")
    assert [name for name, count in names.items() if count > 1] == []


def test_the_engine_has_at_most_seven_files_per_thousand_lines() -> None:
    files = modules(ENGINE).values()
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
    assert 1000 * len(files) <= 7 * lines
