"""`course bench` as a person runs it."""

import pytest
import torch

from tests.conftest import Run


def test_a_quick_run_fills_the_lessons_first_row(run_course: Run) -> None:
    done = run_course("bench", "--quick")
    assert (done.returncode, done.stderr) == (0, "")
    ours = [line.split() for line in done.stdout.splitlines() if " 256 " in line]
    assert [row[0] for row in ours] == ["float32"] * 2 + ["bfloat16"] * 2 + ["A100,"]
    assert ours[-1][-3:] == ["0.31", "0.11", "2.8×"]
    assert all(float(row[-6]) > 0 and float(row[-5]) > 0 for row in ours[:-1])


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_without_a_gpu_it_says_so_and_what_to_run_instead(run_course: Run) -> None:
    done = run_course("bench", "--device", "cuda")
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == "course: this machine has no CUDA device that torch can use. Next: course bench --device cpu\n"
    )


@pytest.mark.gpu
def test_on_a_gpu_a_quick_run_names_the_device(run_course: Run) -> None:
    done = run_course("bench", "--quick", "--device", "cuda")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"cuda: {torch.cuda.get_device_name()}" in done.stdout
