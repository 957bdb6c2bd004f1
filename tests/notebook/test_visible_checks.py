"""`check_notebook`, the visible checks of a notebook: they compare its functions with recorded
answers, and raise an exception if a check fails.
"""

import sys
import textwrap

import pytest
import torch

from manyheads.course import Course
from manyheads.notebook import VisibleCheckFailed, check_notebook, source_of
from manyheads.submission.source import NO_TEXT
from tests.make import REPOSITORY


@pytest.fixture(autouse=True)
def _in_exercise_folder(tiny: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test in the folder of the exercise, as a notebook does."""
    monkeypatch.chdir(tiny.root / "exercises" / "averages")


def cumulative_mean(x: torch.Tensor) -> torch.Tensor:
    """Return the right answer to the exercise running_mean."""
    if len(x) == 0:
        raise ValueError("nothing to average")
    return x.cumsum(0) / torch.arange(1, len(x) + 1, dtype=x.dtype)


def test_right_answers_print_a_passing_report(capsys):
    check_notebook("running_mean", {"running_mean": cumulative_mean})
    assert capsys.readouterr().out.startswith("✓ 01 running mean")


def test_wrong_answers_raise_an_error_that_contains_the_report():
    report = (
        r"(?s)^✗ 01 running mean.*✗ running_mean: You divided by the length of x everywhere\.."
        r"*hint: "
    )
    with pytest.raises(VisibleCheckFailed, match=report) as raised:
        check_notebook(
            "running_mean",
            {"running_mean": lambda x: cumulative_mean(x) * 0 + x.cumsum(0) / len(x)},
        )
    assert max(map(len, str(raised.value).splitlines())) <= 86  # nbgrader cuts longer lines


def test_a_function_that_uses_a_wrong_function_waits_for_it(tmp_path, monkeypatch):
    monkeypatch.chdir(REPOSITORY / "exercises" / "multi_head_attention")
    text = (REPOSITORY / "solutions" / "multi_head_attention" / "01_attention_scores.py").read_text(
        encoding="utf-8"
    )
    cell = tmp_path / "cell.py"
    cell.write_text(
        text.replace(" / math.sqrt(q.shape[-1])", "").replace("if __name__", "if 0 and __name__")
    )
    namespace: dict[str, object] = {"__name__": "__main__"}
    exec(compile(cell.read_text(), str(cell), "exec"), namespace)
    with pytest.raises(
        VisibleCheckFailed, match=r"(?s)✗ attention_scores: .*· attend: waits for attention_scores"
    ):
        check_notebook("attention_scores", namespace)


def test_an_undefined_function_fails_its_check():
    with pytest.raises(VisibleCheckFailed):
        check_notebook("running_mean", {})


def test_missing_recorded_answers_are_reported_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        VisibleCheckFailed, match=r"open it where the class repository has it, and run this"
    ) as raised:
        check_notebook("running_mean")
    assert raised.value._render_traceback_() == [str(raised.value)]


def test_source_of_excludes_imported_functions():
    assert source_of({"dedent": textwrap.dedent, "indent": textwrap.indent}) == NO_TEXT


def test_source_of_omits_a_class_after_a_deeply_nested_expression(tmp_path, monkeypatch):
    """To find the class, Python's inspect recurses into the whole cell, and exceeds its limit."""
    cell = tmp_path / "cell.py"
    cell.write_text(f"def never():\n    return x{'()' * 900}\n\n\nclass Given:\n    pass\n")
    namespace: dict[str, object] = {"__name__": "__main__"}
    exec(compile(cell.read_text(), str(cell), "exec"), namespace)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(cell), raising=False)
    assert "def never" in source_of(namespace).text
