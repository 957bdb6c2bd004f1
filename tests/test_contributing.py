"""Internal: CONTRIBUTING.md describes tables that are internal to packages.

If an entry is added to such a table, other places have to be changed too. These tests detect a
place that was forgotten.
"""

import ast
import itertools
import re
import tomllib
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import get_args

from manyheads.box.contents import PACKAGES
from manyheads.box.worker import messages, seccomp
from manyheads.cli import results as command
from manyheads.diagnosis import diagnose
from manyheads.judge.single_edits import RULES
from manyheads.report.score_exports import FORMATS
from manyheads.submission.download_layouts import ROWS

ROOT = Path(__file__).parents[1]
ENGINE, DOCS = ROOT / "manyheads", ROOT / "docs"


def public_functions(folder: str) -> list[ast.FunctionDef]:
    """Return the public functions of a package."""
    trees = [ast.parse(path.read_text()) for path in (ENGINE / folder).glob("*.py")]
    definitions = [node for tree in trees for node in tree.body]
    return [n for n in definitions if isinstance(n, ast.FunctionDef) and n.name[0] != "_"]


def test_the_export_command_and_its_documentation_name_every_format() -> None:
    names = {*FORMATS, "gradescope"}
    assert {*get_args(command.Format)} == names, (
        "Format in manyheads/cli/results.py has other names than FORMATS in score_exports.py"
    )
    help_text = str(command.export.__doc__).lower()
    page = (DOCS / "reports.md").read_text().lower()
    missing = [name for name in names if name not in help_text or name not in page]
    assert not missing, f"the help of export, or docs/reports.md, lacks {missing}"


def test_every_download_platform_has_documentation_and_tests() -> None:
    platforms = {row.platform for row in ROWS}
    table = re.findall(r"^\| (\w+) ", (DOCS / "collect.md").read_text(), re.MULTILINE)
    assert platforms <= {*table}, "docs/collect.md lacks a row"
    paths = (ROOT / "tests" / "submission").rglob("*.py")
    cases = "".join(path.read_text() for path in paths)
    missing = [name for name in platforms if f'"{name}"' not in cases]
    assert not missing, f"tests/submission has no case of {missing}"


def test_system_calls_are_documented_or_have_a_rule() -> None:
    number = len(seccomp._ALWAYS)
    is_named = f"{number} calls always" in (DOCS / "threat-model.md").read_text()
    assert is_named, f'docs/threat-model.md does not say "{number} calls always"'
    without_rule = sorted(seccomp._BY_ARGUMENT.keys() - seccomp._RULES.keys())
    assert not without_rule, f"_RULES in seccomp.py lacks {', '.join(without_rule)}"


def test_the_table_of_edit_rules_is_complete() -> None:
    names = {
        node.name
        for node in public_functions("judge")
        if node.returns and ast.unparse(node.returns) == "Changes"
    }
    # `arguments` is called by the rule `gates`
    untried = names - {"arguments"} ^ {rule.__name__ for rule in RULES}
    assert not untried, f"RULES in single_edits.py and its functions differ in {sorted(untried)}"


def test_the_table_of_diagnosis_rules_is_complete() -> None:
    names = {
        node.name
        for node in public_functions("diagnosis")
        if f"{ast.unparse(node.args)} -> {ast.unparse(node.returns or node)}"
        == "response: Response -> list[Candidate]"
    }
    unapplied = names ^ {rule.__name__ for rule, _ in diagnose.RULES}
    assert not unapplied, f"RULES in diagnose.py and the rules differ in {sorted(unapplied)}"


def reply_fields() -> dict[str, list[str]]:
    """Return the fields of each class that can occur in a reply of the worker."""
    names = ["Reply", "Traced"]  # the types of their fields are appended below
    fields = {}
    for name in names:
        defined = getattr(messages, name)
        types = str(getattr(defined, "__annotations__", defined))
        words = re.findall(r"\b[A-Z]\w+", types)
        names += [word for word in words if hasattr(messages, word) and word not in names]
        if is_dataclass(defined):
            fields[name] = [*defined.__dataclass_fields__]
    return fields


def filled_fields(tree: ast.Module, fields: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    """Yield (class, field) for each field that a call in a module may fill.

    Any function may pass its keywords to a class, as `replace(reply, outputs=...)` does. The class
    is not visible in such a call, so the keywords count for every class.

    Args:
        tree: the module.
        fields: the fields of each class.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            function = node.func.id
            keywords = [str(keyword.arg) for keyword in node.keywords]
            if function in fields:
                positional = fields[function][: len(node.args)]
                yield from itertools.product([function], positional + keywords)
            else:
                yield from itertools.product(fields, keywords)


def test_the_worker_fills_every_field_of_a_reply() -> None:
    """Otherwise the field would always have its default value, without an error."""
    fields = reply_fields()
    assert len(fields) > 8  # otherwise the search for classes is broken
    filled = {("Raised", "in_written")}  # the judge sets this field from the source code
    for path in (ENGINE / "box" / "worker").glob("*.py"):
        filled.update(filled_fields(ast.parse(path.read_text()), fields))
    expected = {(name, field) for name in fields for field in fields[name]}
    unfilled = [f"{name}.{field}" for name, field in sorted(expected - filled)]
    assert not unfilled, f"no module of the worker fills {', '.join(unfilled)}"


def test_every_package_for_attempts_is_a_pinned_dependency() -> None:
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    pinned = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    required = {re.split(r"[<>=]", requirement)[0] for requirement in needed}
    assert {*PACKAGES} <= required, "pyproject.toml lacks a package"
    assert {*PACKAGES} <= {*pinned}, "constraints.txt does not pin a package"
