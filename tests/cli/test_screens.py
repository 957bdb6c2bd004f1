"""What a student sees on a screen of 80 by 24: what matters is there, and the last line is a
command that can be pasted.
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
def screen(tmp_path, monkeypatch, in_this_process):
    """Return the lines that a command shows in a student's folder of the whole course."""
    shutil.copytree(REPOSITORY / "exercises", tmp_path / "exercises")
    shutil.copy(REPOSITORY / "course.yaml", tmp_path)
    # a spinner moves while one waits
    monkeypatch.setattr("manyheads.cli.student.show_waiting", lambda *_: nullcontext())
    monkeypatch.chdir(tmp_path)
    terminal = {"FORCE_COLOR": "1", "COLUMNS": "80", "LINES": "24", "NO_COLOR": ""}

    def screen(*arguments):
        completed = call_course(*arguments, cwd=tmp_path, **terminal)
        assert completed.stderr == ""
        return re.sub(r"\x1b\[[\d;]*[A-Za-z]", "", completed.stdout).splitlines()

    return screen


def fits(lines):
    """Assert that the lines and a prompt fit on the screen, and return the next command."""
    assert len(lines) < 24, lines
    assert max(map(len, lines[:-1])) <= 80
    assert ["Next: " in line for line in lines] == [False] * (len(lines) - 1) + [True], lines
    return lines[-1].removeprefix("Next: ")


def test_screens_fit_before_any_exercise_is_started(screen):
    for command in (["status"], ["check"], ["check", "fused_qkv"], ["hint", "fused_qkv"]):
        next_step = fits(screen(*command))
        assert next_step.startswith("course hint " if command[0] == "hint" else "course check ")
        fits(screen(*shlex.split(next_step)[1:]))


def test_status_names_the_command_that_shows_the_checks_left_out(screen):
    (more_line,) = (line for line in screen("status") if "course status --all" in line)
    assert re.search(r"has 11 checks: |and \d+ more: ", more_line)
    full_screen = screen(*shlex.split(more_line.partition(": course ")[2]))
    assert sum(line.startswith("  ☐ ") for line in full_screen) == 11


def test_screens_fit_if_several_exercises_are_wrong(screen):
    for path in (REPOSITORY / "examples" / "submitted" / "fatima" / FOLDER.name).glob("0[146]*.py"):
        shutil.copy(path, FOLDER)
    lines = screen("check")
    assert fits(lines) == "course hint reshape_dance"
    (failure_index,) = (index for index, line in enumerate(lines) if line.startswith("✗ 04"))
    assert lines[failure_index + 1].startswith("  ✗ split_heads: You viewed straight to")
    assert all(re.match(r"[✓✗…] 0\d ", line) for line in lines[:failure_index])
    assert fits(screen("status")) == "course check causal_mask"
    trace_lines = screen("trace", "reshape_dance")
    fits(trace_lines)
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
    fits(screen("check"))
    trace_lines = screen("trace")
    fits(trace_lines)
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
    fits(screen("check"))
    trace_lines = screen("trace")
    assert fits(trace_lines) == "course hint self_attention"
    assert "These calls are right, and yet something is not: CausalAttention: " in " ".join(
        trace_lines
    )
