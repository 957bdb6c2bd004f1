"""The Markdown that `python -m bench.gpu` prints for docs/attention.md, from figures of ours."""

import sys
from pathlib import Path

import pytest
import torch

from bench.gpu import table
from manyheads.student.measure_attention import Bench, BenchRow, BenchSetting, Measured
from tests.make import run

SHORT, LONG = (BenchSetting(tokens, "float32", backward=False) for tokens in (256, 1024))
ROWS = (
    BenchRow(SHORT, Measured(0.225, 10_300_000), Measured(0.05, 872_000)),
    BenchRow(LONG, Measured(4.0), Measured(1.0)),
    BenchRow(BenchSetting(1024, "bfloat16", backward=True), instead="needs about 99 GB, 4.0 GB is free"),
)


def test_a_row_is_as_the_page_has_it() -> None:
    lines = list(table(Bench("cuda: Some GPU", ROWS, {})))
    assert lines[2:5] == [
        "| float32, forward | 256 | 0.225 | 0.05 | 4.5 | 0.31, 0.11: 2.8 | 3.15 | 10.3 | 0.872 |",
        "|  | 1024 | 4 | 1 | 4.0 | 3.9, 0.9: 4.3 | 50.3 | – | – |",
        "| bfloat16, forward and backward | 1024 | – | – | – |  | 25.2 | – | – |",
    ]
    assert {line.count("|") for line in lines[:5]} == {10}
    assert "is left out: it needs about 99 GB" in lines[-1]


def test_the_page_has_that_table(repository: Path) -> None:
    header = next(iter(table(Bench("cuda: Some GPU", (), {}))))
    assert header in (repository / "docs" / "attention.md").read_text()


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_without_a_gpu_it_measures_nothing_and_says_so(repository: Path) -> None:
    done = run(sys.executable, "-m", "bench.gpu", cwd=repository)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("bench.gpu: this machine has no CUDA device")
