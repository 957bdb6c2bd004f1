"""The checks that `course grade --device cuda` runs, on a device that is not the CPU, where no GPU is at hand.

A soak: compiling the device takes most of a minute.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOO_LARGE_FOR_FLOAT16 = {"self_attention/bmm_baddbmm", "weight_split/bmm_batch_of_heads"}  # they fill with -1e9
NO_MEMORY = "memory: this device does not say how much memory a call holds"

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def found(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[str]]]:
    """What failed, by kind and name."""
    if not shutil.which("g++") or not shutil.which("ninja"):
        pytest.skip("no g++ and ninja to compile the device with")
    command = [sys.executable, "-m", "tests.second_device.judged", str(tmp_path_factory.mktemp("build"))]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    result: dict[str, dict[str, list[str]]] = json.loads(done.stdout)
    return result


def test_right_attempts_are_right_there(found: dict[str, dict[str, list[str]]]) -> None:
    failed = {name: [f for f in failures if f != NO_MEMORY] for name, failures in found["right"].items()}
    assert len(failed) > 100
    assert {name for name, failures in failed.items() if failures} == TOO_LARGE_FOR_FLOAT16
    assert {f.split(":")[0] for name in TOO_LARGE_FOR_FLOAT16 for f in failed[name]} == {"half_precision"}


def test_who_leaves_a_tensor_behind_fails(found: dict[str, dict[str, list[str]]]) -> None:
    assert len(found["mutants"]) > 10
    assert [name for name, failures in found["mutants"].items() if not failures] == []
