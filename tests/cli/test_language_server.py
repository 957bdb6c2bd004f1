"""`course lsp`, as editors speak with it: a scripted client, and Neovim."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jupytext
import pytest

from tests.conftest import Run
from tests.language_client import REPOSITORY, LanguageClient
from tests.make import RIGHT

pytest.importorskip("pygls", reason="manyheads[editor] is not installed")

pytestmark = pytest.mark.journey

SCRIPT, NOTEBOOK = "exercises/averages/01_running_mean.py", "exercises/averages/01_running_mean.ipynb"
WRONG = RIGHT.replace("mean()", "sum()")
LINE = next(
    number for number, line in enumerate(WRONG.splitlines()) if "sum()" in line
)  # from 0 on, as the protocol has it
EXAMPLES = REPOSITORY / "examples" / "submitted"
STUDENTS = sorted(path.name for path in EXAMPLES.iterdir() if path.name != "jun")  # whose loop has no end


@pytest.fixture
def editor(student_copy: Path) -> Iterator[LanguageClient]:
    client = LanguageClient(student_copy)
    yield client
    assert client.close() == 0


def actions(editor: LanguageClient, path: Path, found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The code actions at the first diagnostic, by title."""
    about = {"range": found[0]["range"], "context": {"diagnostics": found}}
    told = editor.request("textDocument/codeAction", {"textDocument": {"uri": path.as_uri()}, **about})
    return {action["title"]: action["command"] for action in told}


def chosen(editor: LanguageClient, command: dict[str, Any]) -> str:
    """What the editor shows after an action."""
    wanted = {"command": command["command"], "arguments": command["arguments"]}
    editor.request("workspace/executeCommand", wanted)
    return str(editor.received("window/showMessage")["message"])


def test_a_save_shows_the_wrong_line_and_clears_it_when_it_is_right(editor, student_copy):
    path = student_copy / SCRIPT
    assert editor.open(path) == []  # nothing is written yet
    for save in range(3):
        (found,) = editor.save(path, f"{WRONG}# {save}\n")
        start, end = found["range"]["start"], found["range"]["end"]
        assert (start["line"], end["line"], found["source"]) == (LINE, LINE, "course")
        assert WRONG.splitlines()[LINE][start["character"] : end["character"]] == WRONG.splitlines()[LINE].strip()
        assert found["message"].startswith("running_mean: You summed without dividing")
        assert "8 of 9 values differ" in found["message"]  # which editors show on hover
        assert found["relatedInformation"][0]["message"].startswith("Hint: ")
        assert editor.save(path, f"{RIGHT}# {save}\n") == []


def test_next_hint_is_an_action_whose_hint_goes_to_the_diagnostic(editor, student_copy):
    path = student_copy / SCRIPT
    found = editor.save(path, WRONG)
    said = chosen(editor, actions(editor, path, found)["Next hint"])
    (now,) = editor.diagnostics(path)
    assert "Hint 2 of 3: " in said
    assert now["relatedInformation"][0]["message"] in said
    assert editor.save(path, f"{WRONG}# changed\n")[0]["relatedInformation"] == found[0]["relatedInformation"]


def test_shapes_stand_behind_the_lines_that_make_them(editor, student_copy):
    path = student_copy / SCRIPT
    editor.save(path, RIGHT)
    everywhere = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
    asked = {"textDocument": {"uri": path.as_uri()}, "range": everywhere}
    (hint,) = editor.request("textDocument/inlayHint", asked)
    line = RIGHT.splitlines()[LINE]
    assert (hint["position"], hint["label"]) == ({"line": LINE, "character": len(line)}, "→ (T)")


def test_what_is_no_exercise_or_is_done_in_the_notebook_shows_nothing(editor, student_copy):
    path = student_copy / SCRIPT
    other = path.with_name("notes.py")
    other.write_text("1 +", encoding="utf-8")
    item = {"uri": other.as_uri(), "languageId": "python", "version": 1, "text": "1 +"}
    editor.notify("textDocument/didOpen", {"textDocument": item})
    jupytext.write(jupytext.reads(WRONG, fmt="py:percent"), student_copy / NOTEBOOK)
    assert editor.open(path) == []  # the next that is published is of this file
    assert editor.request("textDocument/inlayHint", {"textDocument": {"uri": other.as_uri()}, "range": {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}}) == []  # fmt: skip


def told_lines(text: str, source: str) -> list[int]:
    """The line of everything that `course check` calls wrong: proved, of an exception, or of the definition."""
    body = text.split("\n", 1)[1]
    defined = {node.name: node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.ClassDef)}  # fmt: skip
    parts = re.split(r"^  (?=[✗✓·] |\d+ checks? |hint: |Grading )", body, flags=re.MULTILINE)
    found = []
    for part in (" ".join(part.split()) for part in parts if part.startswith("✗")):
        named = re.search(r"\(line (\d+)", part) or re.search(r"\b(?:on|from) line (\d+)", part)
        found.append(int(named[1]) if named else defined.get(re.split(r"[: ]", part)[1], 1))
    return sorted(found)


@pytest.mark.parametrize("student", STUDENTS)
def test_in_every_example_the_line_is_that_of_course_check(run_course: Run, tmp_path: Path, student: str) -> None:
    """Beside its sentences: of what is about the whole file there is no function, and no line of one."""
    shutil.copytree(REPOSITORY / "exercises", tmp_path / "exercises")
    shutil.copy(REPOSITORY / "course.yaml", tmp_path)
    shutil.copytree(EXAMPLES / student, tmp_path / "exercises", dirs_exist_ok=True)
    editor = LanguageClient(tmp_path)
    for path in sorted(path for path in EXAMPLES.glob(f"{student}/*/[0-9]*.py")):
        own = tmp_path / "exercises" / path.relative_to(EXAMPLES / student)
        shown = sorted(each["range"]["start"]["line"] + 1 for each in editor.open(own))
        done = run_course("check", own.stem[3:], cwd=tmp_path)
        if not re.search("Python cannot read your file|Your file cannot be imported", done.stdout):
            assert shown == told_lines(done.stdout, path.read_text(encoding="utf-8-sig")), done.stdout
        assert bool(shown) == bool("✗" in done.stdout)
    assert editor.close() == 0


NEOVIM = """
local file, right, out = ...
vim.cmd("edit " .. file)
local client = vim.lsp.start_client({ name = "course", cmd = vim.json.decode(os.getenv("COURSE_LSP")), root_dir = vim.fn.getcwd() })
vim.lsp.buf_attach_client(0, client)
local function shown() return vim.diagnostic.get(0) end
vim.wait(60000, function() return #shown() > 0 end, 20)
local before = shown()
vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.split(right, "\\n", { trimempty = true }))
vim.cmd("write")
vim.wait(60000, function() return #shown() == 0 end, 20)
vim.fn.writefile({ vim.json.encode({ before = before, after = #shown() }) }, out)
vim.cmd("qall!")
"""


@pytest.mark.skipif(shutil.which("nvim") is None, reason="Neovim is not installed")
def test_neovim_shows_the_wrong_line_and_clears_it_after_a_save(student_copy: Path, tmp_path: Path) -> None:
    path, out = student_copy / SCRIPT, tmp_path / "seen.json"
    path.write_text(WRONG, encoding="utf-8")
    arguments = ", ".join(json.dumps(each) for each in (str(path), RIGHT, str(out)))
    script = tmp_path / "editor.lua"
    script.write_text(f"local function run(...)\n{NEOVIM}\nend\nrun({arguments})\n", encoding="utf-8")
    server = json.dumps([sys.executable, "-m", "manyheads", "lsp"])
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "COURSE_LSP": server, "HOME": str(tmp_path)}
    command = ["nvim", "--headless", "-u", "NONE", "-n", "-c", f"luafile {script}"]
    subprocess.run(command, cwd=student_copy, env=environment, check=True, timeout=150)
    seen = json.loads(out.read_text(encoding="utf-8"))
    (before,) = seen["before"]
    assert (before["lnum"], before["source"], seen["after"]) == (LINE, "course", 0)
    assert before["message"].startswith("running_mean: You summed without dividing")
