"""A release trains the reference of a module, unless its trained weights exist already."""

import re
from functools import partial
from pathlib import Path

import pytest
import torch

from manyheads.authoring import release_exercises
from manyheads.authoring.release_exercises import record, stray_files, trained_blocks
from manyheads.course import Course, CourseError, load_course
from manyheads.judge.run_hidden_checks import Catalogue
from manyheads.student.train_model import SENTENCE, read_blocks, save_blocks

MODULE = """
from torch import nn
class Mean(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.proj = nn.Linear(channels, channels)
    def forward(self, x):
        return self.proj(x.cumsum(1) / (x.shape[1] + 1))
"""


@pytest.fixture
def course_with_module(tiny_copy: Path) -> Course:
    """Return the tiny course with an additional module to train."""
    yaml = tiny_copy / "course.yaml"
    train = "        train: {module: Mean, arguments: {channels: C}}\n"
    yaml.write_text(yaml.read_text(encoding="utf-8").rstrip() + f"\n{train}", encoding="utf-8")
    solution = tiny_copy / "solutions" / "averages" / "01_running_mean.py"
    head, mark, main_block = solution.read_text(encoding="utf-8").partition(
        'if __name__ == "__main__":'
    )
    solution.write_text(f"{head}{MODULE}\n{mark}{main_block}", encoding="utf-8")
    return load_course(tiny_copy)


def test_trained_weights_are_kept_by_the_next_release(course_with_module, monkeypatch):
    monkeypatch.setattr(release_exercises, "trained_blocks", partial(trained_blocks, steps=2))
    (exercise,), catalogue = course_with_module.exercises, Catalogue(course_with_module)
    files = record(catalogue, exercise)
    exercise.trained.parent.mkdir()
    exercise.trained.write_bytes(files[exercise.trained])
    blocks = read_blocks(exercise.trained)
    for block in blocks:
        assert block.module_input.shape == (1, len(SENTENCE), 64)
        weight, bias = block.weights["proj.weight"], block.weights["proj.bias"]
        torch.testing.assert_close(
            block.module_output,
            (block.module_input.cumsum(1) / (len(SENTENCE) + 1)) @ weight.mT + bias,
        )
    assert save_blocks(blocks) == files[exercise.trained]
    assert record(catalogue, exercise).keys() == {exercise.fingerprints}
    written = release_exercises.write_release(course_with_module, catalogue)
    assert exercise.trained in written
    assert exercise.trained.read_bytes() == files[exercise.trained]
    other_paths = [path for path in written if path != exercise.trained]
    assert stray_files(course_with_module, other_paths) == [exercise.trained]


@pytest.mark.parametrize(
    ("content", "problem"), [(None, "is missing"), (b"\0" * 9, "cannot be read")]
)
def test_an_unreadable_file_of_weights_is_reported(tmp_path, content, problem):
    path = tmp_path / "trained.safetensors"
    if content is not None:
        path.write_bytes(content)
    message = (
        rf"{re.escape(path.name)} {problem}.*make it with course release. Next: git checkout .*$"
    )
    with pytest.raises(CourseError, match=message):
        read_blocks(path)
