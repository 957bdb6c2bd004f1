"""Student commands fit on a terminal of 80 by 24 characters, and their last line suggests the next
command.
"""

import re
import shlex
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.make import REPOSITORY, call_course

FOLDER = Path("exercises") / "multi_head_attention"


@pytest.fixture
def screen(tmp_path, monkeypatch, attempts_in_new_processes):
    """Return a function that runs a command in a student's folder of the real course.

    It returns the lines of the output, without colours.
    """
    shutil.copytree(REPOSITORY / "exercises", tmp_path / "exercises")
    shutil.copy(REPOSITORY / "course.yaml", tmp_path)
    # the spinner of a waiting command would add lines
    monkeypatch.setattr("manyheads.cli.student.show_waiting", lambda *_: nullcontext())
    monkeypatch.chdir(tmp_path)
    terminal = {"FORCE_COLOR": "1", "COLUMNS": "80", "LINES": "24", "NO_COLOR": ""}

    def run_command(*arguments):
        completed = call_course(*arguments, cwd=tmp_path, **terminal)
        assert completed.stderr == ""
        return re.sub(r"\x1b\[[\d;]*[A-Za-z]", "", completed.stdout).splitlines()

    return run_command


def check_fit(lines):
    """Assert that the lines and a prompt fit on the screen, and return the suggested command."""
    assert len(lines) < 24, lines
    assert max(map(len, lines[:-1])) <= 80
    assert ["Next: " in line for line in lines] == [False] * (len(lines) - 1) + [True], lines
    return lines[-1].removeprefix("Next: ")


def test_screens_fit_before_any_exercise_is_started(screen):
    for command in (["status"], ["check"], ["check", "fused_qkv"], ["hint", "fused_qkv"]):
        next_step = check_fit(screen(*command))
        assert next_step.startswith("course hint " if command[0] == "hint" else "course check ")
        check_fit(screen(*shlex.split(next_step)[1:]))


def test_status_names_the_command_that_shows_the_checks_left_out(screen):
    (more_line,) = (line for line in screen("status") if "course status --all" in line)
    assert re.search(r"has 11 checks: |and \d+ more: ", more_line)
    all_lines = screen(*shlex.split(more_line.partition(": course ")[2]))
    assert sum(line.startswith("  ☐ ") for line in all_lines) == 11


def test_screens_fit_if_several_exercises_are_wrong(screen):
    for path in (REPOSITORY / "examples" / "submitted" / "fatima" / FOLDER.name).glob("0[146]*.py"):
        shutil.copy(path, FOLDER)
    lines = screen("check")
    assert check_fit(lines) == "course hint reshape_dance"
    (failure_index,) = (index for index, line in enumerate(lines) if line.startswith("✗ 04"))
    assert lines[failure_index + 1].startswith("  ✗ split_heads: You viewed straight to")
    assert all(re.match(r"[✓✗…] 0\d ", line) for line in lines[:failure_index])
    assert check_fit(screen("status")) == "course check causal_mask"
    trace_lines = screen("trace", "reshape_dance")
    check_fit(trace_lines)
    assert [line for line in trace_lines if line.strip().startswith("! T is no longer T:")]
    assert [line[:9] for line in trace_lines if line.startswith("  token")][:3] == [
        "  token 1",
        "  token 2",
        "  token 3",
    ]
    (more_line,) = (line for line in trace_lines if "lines more: " in line)
    assert len(screen(*shlex.split(more_line.partition(": course ")[2]))) > 40


def test_screens_fit_if_four_functions_of_a_file_are_wrong(screen):
    text = (REPOSITORY / "solutions" / FOLDER.name / "01_attention_scores.py").read_text(
        encoding="utf-8"
    )
    returns = re.compile(r"^( +return )(.*?)( +#.*)?$", re.MULTILINE)
    (FOLDER / "01_attention_scores.py").write_text(
        returns.sub(r"\1(\2) * 1.5", text), encoding="utf-8"
    )
    check_fit(screen("check"))
    trace_lines = screen("trace")
    check_fit(trace_lines)
    assert "attend(q, k, v), which waits for attention_scores: " in " ".join(trace_lines)


def test_screens_fit_if_the_traced_calls_are_right_but_the_exercise_fails(screen):
    text = (REPOSITORY / "solutions" / FOLDER.name / "03_self_attention.py").read_text(
        encoding="utf-8"
    )
    mutant = text.replace(
        "self.dropout(torch.softmax(scores, dim=-1))", "torch.softmax(scores, dim=-1)"
    )
    assert mutant != text
    (FOLDER / "03_self_attention.py").write_text(mutant, encoding="utf-8")
    check_fit(screen("check"))
    trace_lines = screen("trace")
    assert check_fit(trace_lines) == "course hint self_attention"
    assert "These calls are right, and yet something is not: CausalAttention: " in " ".join(
        trace_lines
    )
