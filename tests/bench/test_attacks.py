"""The bench tells a forged score from one that held, on evidence that it gathers itself."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # bench is no part of the installed package

from bench.attacks.exercise import RUNNING_MEAN, lay_out
from bench.attacks.run import Evidence, run
from bench.attacks.verdict import is_sound, verdict
from bench.graders import Grader, ManyHeads, PlainPytest

CONTROL = Evidence(
    score=2.0,
    neighbour=4.0,
    hung=False,
    seconds=5.0,
    connected=False,
    sent_out=False,
    left_running=(),
    left_in_memory=0,
    largest=300 << 20,
)


def graded(grader: Grader, folder: Path) -> Evidence:
    """What was seen, as if it had taken no longer than the control: a busy machine's seconds say nothing here."""
    return replace(run(grader, "patched_comparisons", folder, limit=250), seconds=CONTROL.seconds)


@pytest.mark.soak  # another grader is under attack
def test_patched_comparisons_are_forged_marks_on_plain_pytest(tmp_path):
    assert verdict(graded(PlainPytest(RUNNING_MEAN), tmp_path), CONTROL) == ["full marks"]


@pytest.mark.soak  # the suite has it in tests/hostile/test_forging.py
def test_patched_comparisons_are_held_by_course_grade(tmp_path):
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed: there is no box to attack")
    assert verdict(graded(ManyHeads(lay_out, "averages", "running_mean", jobs=1), tmp_path), CONTROL) == [
        "held, 2 of 4"
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "held, 2 of 4"),
        ({"score": 1.0}, "held, 1 of 4"),
        ({"score": None}, "held, no score"),
        ({"seconds": 50.0}, "held, 2 of 4 after 50 s"),
        ({"score": 3.0}, "3 of 4 forged"),
        ({"score": 4.0}, "full marks"),
        ({"connected": True}, "reached the network"),
        ({"connected": True, "sent_out": True}, "hidden tests sent out"),
        ({"neighbour": 1.0}, "neighbour lost 3 points"),
        ({"neighbour": None}, "neighbour not graded"),
        ({"hung": True, "seconds": 60.0, "left_running": ("python",)}, "hung, stopped after 60 s"),
        ({"left_running": ("python", "sh")}, "2 processes left running"),
        ({"largest": 3 << 30}, "took 2.7 GiB"),
        ({"left_in_memory": 200_000_000}, "200 MB left in /dev/shm"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_piece_of_evidence_has_a_word_of_its_own(change, words):
    assert verdict(replace(CONTROL, **change), CONTROL) == [words]


@pytest.mark.parametrize("change", [{"score": None}, {"score": 4.0}, {"neighbour": None}, {"left_running": ("sh",)}])
def test_a_grader_that_does_not_grade_the_control_is_not_measured(change):
    assert is_sound(CONTROL)
    assert not is_sound(replace(CONTROL, **change))
