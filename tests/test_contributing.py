"""CONTRIBUTING's table names every place: whoever adds something and forgets one is told here, or
by the tests of its row.
"""

import ast
import re
import tomllib
from pathlib import Path
from typing import get_args

from manyheads.box.contents import PACKAGES
from manyheads.box.worker import seccomp
from manyheads.cli import results as command
from manyheads.diagnosis import diagnose
from manyheads.judge.single_edits import RULES
from manyheads.report.score_exports import FORMATS
from manyheads.submission.download_layouts import ROWS

ROOT = Path(__file__).parents[1]
ENGINE, DOCS = ROOT / "manyheads", ROOT / "docs"


def functions(folder: str) -> list[tuple[str, ast.FunctionDef]]:
    """The public functions of a package, each with its file."""
    definitions = [
        (path.name, n)
        for path in (ENGINE / folder).glob("*.py")
        for n in ast.parse(path.read_text()).body
    ]
    return [
        (name, node)
        for name, node in definitions
        if isinstance(node, ast.FunctionDef) and node.name[0] != "_"
    ]


def test_the_command_its_help_and_the_docs_name_every_export_format() -> None:
    names = {*FORMATS, "gradescope"}
    assert {*get_args(command.Format)} == names, (
        "Format in manyheads/cli/results.py has other names than FORMATS in score_exports.py"
    )
    texts = {
        "the help of export": command.export.__doc__ or "",
        "docs/reports.md": (DOCS / "reports.md").read_text(),
    }
    missing = [
        f"{where} lacks {name}"
        for where, text in texts.items()
        for name in names_missing_in(text, names)
    ]
    assert not missing, "; ".join(missing)


def names_missing_in(text: str, names: set[str]) -> list[str]:
    """The names that the text does not have."""
    return sorted(name for name in names if name not in text.lower())


def test_every_platform_is_in_the_docs_and_in_the_cases() -> None:
    platforms = [row.platform for row in ROWS]
    table = re.findall(r"^\| (\w+) ", (DOCS / "collect.md").read_text(), re.MULTILINE)
    cases = "".join(
        (ROOT / "tests" / "submission" / name).read_text()
        for name in ("conftest.py", "test_download_layouts.py")
    )
    assert [name for name in platforms if name not in table] == [], (
        "these have no row in docs/collect.md"
    )
    assert [name for name in platforms if f'"{name}"' not in cases] == [], (
        "these have no case in tests/submission"
    )


def test_the_docs_know_how_many_system_calls_are_allowed_and_the_others_have_a_rule() -> None:
    number = len(seccomp._ALWAYS)
    is_named = f"{number} calls always" in (DOCS / "threat-model.md").read_text()
    assert is_named, f'docs/threat-model.md does not say "{number} calls always"'
    without_rule = sorted(seccomp._BY_ARGUMENT.keys() - seccomp._RULES.keys())
    assert not without_rule, f"_RULES in seccomp.py lacks {', '.join(without_rule)}"


def test_every_rule_of_edits_is_tried() -> None:
    names = {
        node.name
        for _, node in functions("judge")
        if node.returns and ast.unparse(node.returns) == "Changes"
    }
    # arguments: a part of `gates`
    untried = names - {"arguments"} ^ {rule.__name__ for rule in RULES}
    assert not untried, f"RULES in single_edits.py and its functions differ in {sorted(untried)}"


def test_every_rule_by_which_a_mistake_is_named_is_applied() -> None:
    names = {
        node.name
        for _, node in functions("diagnosis")
        if f"{ast.unparse(node.args)} -> {ast.unparse(node.returns or node)}"
        == "response: Response -> list[Candidate]"
    }
    unapplied = names ^ {rule.__name__ for rule, _ in diagnose.RULES}
    assert not unapplied, f"RULES in diagnose.py and the rules differ in {sorted(unapplied)}"


def test_the_worker_fills_every_field_of_a_reply() -> None:
    """One that is forgotten has its default for ever."""
    worker = ENGINE / "box" / "worker"
    defined: dict[str, ast.ClassDef | ast.Assign] = {}
    for n in ast.parse((worker / "messages.py").read_text()).body:
        if isinstance(n, ast.ClassDef):
            defined[n.name] = n
        elif isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name):
            defined[n.targets[0].id] = n
    replies = ["Reply", "Traced"]  # then all classes and types of their fields
    for name in replies:
        node = defined[name]
        types = (
            [node.value]
            if isinstance(node, ast.Assign)
            else [n.annotation for n in node.body if isinstance(n, ast.AnnAssign)]
        )
        words = re.findall(r"\w+", " ".join(map(ast.unparse, types)))
        replies += [word for word in words if word in defined and word not in replies]
    classes = [n for name in replies if isinstance(n := defined[name], ast.ClassDef)]
    fields = {}
    for c in classes:
        annotated = (n.target for n in c.body if isinstance(n, ast.AnnAssign))
        fields[c.name] = [target.id for target in annotated]  # type: ignore[union-attr]
    filled = {("Raised", "in_written")}  # which the judge reads from the text
    for node in (
        node for path in worker.glob("*.py") for node in ast.walk(ast.parse(path.read_text()))
    ):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            names = fields.get(node.func.id, [])[: len(node.args)]
            for name in (*names, *(keyword.arg for keyword in node.keywords)):
                filled |= {
                    (class_name, name)
                    for class_name in ([node.func.id] if node.func.id in fields else fields)
                }
    expected = {
        (name, field)
        for name, field_names in fields.items()
        for field in field_names
        if name != "Between"
    }
    unfilled = [f"{name}.{field}" for name, field in sorted(expected - filled)]
    assert not unfilled, f"no module of the worker fills {', '.join(unfilled)}"


def test_every_package_for_attempts_is_installed_as_it_was_tested() -> None:
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    pinned = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    required = {re.split(r"[<>=]", requirement)[0] for requirement in needed}
    assert [package for package in PACKAGES if package not in required] == [], (
        "pyproject.toml does not need these"
    )
    assert [package for package in PACKAGES if package not in pinned] == [], (
        "constraints.txt does not pin these"
    )
