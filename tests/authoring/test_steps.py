"""Lessons in steps: the lesson's visible check prints ✓ only for steps that are done."""

import contextlib
import io
from pathlib import Path

import pytest

from tests.make import cases

ROOT = Path(__file__).parents[2]
LESSONS = ("05_weight_split", "07_fused_qkv")


def steps_and_error(lesson: str, forward: str) -> tuple[list[int], str]:
    """Run a lesson's visible check on its solution with a changed last line of `forward`.

    Args:
        forward: The line that replaces the last one of `forward`.

    Returns:
        The steps that are reported as done, and the error of the check, "" if there is none.
    """
    path = ROOT / "solutions" / "multi_head_attention" / f"{lesson}.py"
    text = path.read_text(encoding="utf-8")
    (last_line,) = (
        line
        for line in text.splitlines()
        if line.startswith("        return self.") and "proj(" in line
    )
    solution, end, checks = text.replace(last_line, forward, 1).partition("### See for yourself")
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(solution + end + checks, lesson, "exec"), {"__name__": "__main__"})
    except (AssertionError, NotImplementedError, AttributeError, RuntimeError) as error:
        error_text = f"{type(error).__name__}: {error}"
    else:
        error_text = ""
    return [step for step in (1, 2, 3) if f"✓ step {step}" in printed.getvalue()], error_text


@pytest.mark.parametrize("lesson", LESSONS)
@cases(
    ("forward", "steps", "error_start"),
    {
        "nothing written": ("        raise NotImplementedError", [1], "NotImplementedError"),
        "no return": (
            "        pass",
            [1],
            "AssertionError: forward returned None, not a tensor: is a return missing?",
        ),
        "the values alone": (
            "        return v.transpose(1, 2).reshape(B, T, -1)",
            [1],
            "AssertionError: token 0 was rewritten",
        ),
        "ones in place of the input": (
            "        return self.{proj}(x.new_ones(B, T, {proj_in}))",
            [1],
            "AssertionError: token 0 was rewritten",
        ),
    },
)
def test_only_finished_steps_are_reported_as_done(lesson, forward, steps, error_start):
    projection = {"proj": "proj", "proj_in": "C"}
    if lesson == "05_weight_split":
        projection = {"proj": "out_proj", "proj_in": "12"}
    passed_steps, error_text = steps_and_error(lesson, forward.format(**projection))
    assert passed_steps == steps
    assert error_text.startswith(error_start)
