"""Attention by hand and SDPA are run: they agree, and only one holds a (T, T) matrix."""

import subprocess
import sys
import textwrap

import pytest
import torch

from manyheads.student import bench_written_out_attention as measuring
from manyheads.student.bench_written_out_attention import Bench, BenchSetting, measure

SQUARE = 1024  # T of a matrix that is large beside everything else: 50 MB

pytestmark = pytest.mark.journey  # large matrices, in new processes


def bench_of(*settings: BenchSetting, device: str = "cpu") -> Bench:
    return measure(settings, device, lambda setting: None, 0.0)


def numbers_of_process(code: str) -> list[int]:
    """Return the numbers that a new process prints. Its memory holds nothing from other tests.

    Skips the test if the system does not tell a process its peak.
    """
    completed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    if "None" in completed.stdout:
        pytest.skip("this system does not tell a process its peak")
    return [int(word) for word in completed.stdout.split()]


@pytest.mark.parametrize("backward", [False, True])
def test_both_paths_give_the_same_numbers(backward):
    bench = bench_of(BenchSetting(80, "float32", backward), BenchSetting(80, "bfloat16", backward))
    assert bench.apart["float32"] < 1e-5
    assert bench.apart["bfloat16"] < 0.05
    assert all(row.by_hand.time > 0 for row in bench.rows)
    assert bench.where.startswith("cpu: ")
    assert bench.where.endswith(f", threads: {torch.get_num_threads()}; torch {torch.__version__}")


def test_a_path_that_sees_the_future_is_found(monkeypatch):
    monkeypatch.setattr(measuring, "_sdpa", torch.nn.functional.scaled_dot_product_attention)
    assert bench_of(BenchSetting(80, "float32", backward=False)).apart["float32"] > 0.1


@pytest.mark.parametrize("backward", [False, True])
def test_only_the_path_by_hand_holds_the_matrix(backward):
    setting = BenchSetting(SQUARE, "float32", backward)
    by_hand, sdpa = numbers_of_process(f"""
        from manyheads.student.bench_written_out_attention import BenchSetting, measure
        settings = [BenchSetting({SQUARE}, "float32", {backward})]
        (row,) = measure(settings, "cpu", lambda setting: None, 0.0).rows
        print(row.by_hand.peak, row.sdpa.peak)
    """)
    assert sdpa < setting.matrix / 2
    assert setting.matrix < by_hand < measuring.SQUARES * setting.matrix


def test_a_peak_is_what_a_run_holds_at_once():
    size = 64_000_000
    (peak,) = numbers_of_process(f"""
        import torch
        from manyheads.student.bench_written_out_attention import peak_of

        def run():
            for _ in range(3):
                held = torch.ones({size}, dtype=torch.uint8)
            return int(held[-1])

        found, peak = peak_of(run, "cpu")
        assert found == 1
        print(peak)
    """)
    assert size < peak < 2.5 * size  # a new one is made before the old one goes


def test_a_setting_that_does_not_fit_into_memory_is_left_out(monkeypatch):
    monkeypatch.setattr(measuring, "_bytes", lambda name, file: 4_000_000_000)
    large, small = (BenchSetting(T, "float32", backward=False) for T in (4096, 40))
    left_out, measured = bench_of(large, small).rows
    assert (left_out.by_hand, left_out.instead) == (None, "needs about 4.0 GB, 4.0 GB is free")
    assert measured.faster


@pytest.mark.gpu
def test_on_a_gpu_sdpa_holds_far_less_than_the_matrix_at_full_length():
    settings = [
        BenchSetting(4096, dtype, backward)
        for dtype in ("float32", "bfloat16")
        for backward in (False, True)
    ]
    bench = bench_of(*settings, device="cuda")
    for row in bench.rows:
        assert (row.sdpa.peak or 0) < row.setting.matrix / 4
        assert (row.by_hand.peak or 0) > row.setting.matrix
    assert bench.where == f"cuda: {torch.cuda.get_device_name()}; torch {torch.__version__}"
