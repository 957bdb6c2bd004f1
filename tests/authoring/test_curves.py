"""Recorded curves are carried over by a release, and told where they are stale."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from manyheads.authoring import curves
from manyheads.authoring.curves import record_curve, stale_curves, trained_exercises
from manyheads.authoring.release_exercises import released_files, stray_files
from manyheads.box.worker.training_messages import TrainPlan
from manyheads.course import Course, load_course
from manyheads.judge.catalogue import Catalogue
from manyheads.student.recorded_training import read
from manyheads.student.training_plan import EVALUATE_EVERY, TrainingText, plan_for

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
def with_module(tiny_copy: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """The tiny course, with a module to train beside its function, and a short plan."""

    def short(text: TrainingText, seed: int = 0, draws: int = 0) -> TrainPlan:
        return replace(plan_for(text, seed, draws), steps=EVALUATE_EVERY, batch=2, n_layer=1)

    monkeypatch.setattr(curves, "plan_for", short)
    yaml = tiny_copy / "course.yaml"
    train = "        train: {module: Mean, arguments: {channels: C}}\n"
    yaml.write_text(yaml.read_text(encoding="utf-8").rstrip() + f"\n{train}", encoding="utf-8")
    solution = tiny_copy / "solutions" / "averages" / "01_running_mean.py"
    head, mark, rest = solution.read_text(encoding="utf-8").partition('if __name__ == "__main__":')
    solution.write_text(f"{head}{MODULE}\n{mark}{rest}", encoding="utf-8")
    return load_course(tiny_copy)


def recorded(course: Course) -> Path:
    """Record the one curve of this course."""
    ((exercise, trainable),) = trained_exercises(course)
    path = exercise.curve
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(record_curve(exercise, trainable))
    return path


def test_a_curve_is_recorded_with_its_spread_and_what_was_learned(with_module: Course) -> None:
    assert stale_curves(with_module) == [
        "exercises/averages/curves/01_running_mean.safetensors was not recorded with the current text and plan"
    ]
    path = recorded(with_module)
    assert stale_curves(with_module) == []
    found = read(path)
    assert found.curve.steps == EVALUATE_EVERY
    assert 0 < found.spread[EVALUATE_EVERY] < 1
    ((taken, given),) = found.sentence
    weight, bias = (found.weights[f"blocks.0.attention.proj.{name}"] for name in ("weight", "bias"))
    torch.testing.assert_close(given, (taken.cumsum(1) / (taken.shape[1] + 1)) @ weight.mT + bias)


def test_it_is_stale_when_what_is_built_changes(with_module: Course) -> None:
    recorded(with_module)
    yaml = with_module.root / "course.yaml"
    yaml.write_text(yaml.read_text(encoding="utf-8").replace("channels: C", "channels: T"), encoding="utf-8")
    assert len(stale_curves(load_course(with_module.root))) == 1


def test_a_release_carries_it_over_and_a_curve_of_no_module_is_a_stray(with_module: Course) -> None:
    path = recorded(with_module)
    content = path.read_bytes()
    catalogue = Catalogue(with_module)
    files = list(released_files(with_module, catalogue))
    assert {file.path: file.content for file in files}[path] == content
    assert stray_files(with_module, [file.path for file in files]) == []
    assert stray_files(with_module, [file.path for file in files if file.path != path]) == [path]
