"""`course bench` measures attention written by hand and PyTorch's fused SDPA.

Both give the same numbers, but only the one by hand keeps a (T, T) matrix in memory.
"""

import subprocess
import sys
import textwrap

import pytest
import torch

from manyheads.student import bench_written_out_attention as measuring
from manyheads.student.bench_written_out_attention import Bench, BenchSetting, measure

LARGE_T = 1024  # the (T, T) matrices of all heads take 50 MB, more than everything else

pytestmark = pytest.mark.journey  # large matrices, in new processes


def bench_of(*settings: BenchSetting, device: str = "cpu") -> Bench:
    """Measure these settings, with no progress messages and as few runs as possible."""
    return measure(settings, device, lambda setting: None, 0.0)


def numbers_of_process(code: str) -> list[int]:
    """Return the numbers that this code prints in a new process.

    A new process holds no memory from other tests. The test is skipped if the system does not
    report the peak memory of a process.
    """
    completed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    if "None" in completed.stdout:
        pytest.skip("this system does not tell a process its peak")
    return [int(word) for word in completed.stdout.split()]


@pytest.mark.parametrize("backward", [False, True])
def test_attention_by_hand_and_sdpa_agree(backward):
    bench = bench_of(BenchSetting(80, "float32", backward), BenchSetting(80, "bfloat16", backward))
    assert bench.apart["float32"] < 1e-5
    assert bench.apart["bfloat16"] < 0.05
    assert all(row.by_hand.time > 0 for row in bench.rows)
    assert bench.where.startswith("cpu: ")
    assert bench.where.endswith(f", threads: {torch.get_num_threads()}; torch {torch.__version__}")


def test_the_difference_is_large_if_one_of_the_two_sees_the_future(monkeypatch):
    monkeypatch.setattr(measuring, "_sdpa", torch.nn.functional.scaled_dot_product_attention)
    assert bench_of(BenchSetting(80, "float32", backward=False)).apart["float32"] > 0.1


@pytest.mark.parametrize("backward", [False, True])
def test_only_attention_by_hand_keeps_the_matrix_in_memory(backward):
    setting = BenchSetting(LARGE_T, "float32", backward)
    by_hand, sdpa = numbers_of_process(f"""
        from manyheads.student.bench_written_out_attention import BenchSetting, measure
        settings = [BenchSetting({LARGE_T}, "float32", {backward})]
        (row,) = measure(settings, "cpu", lambda setting: None, 0.0).rows
        print(row.by_hand.peak, row.sdpa.peak)
    """)
    assert sdpa < setting.matrix / 2
    assert setting.matrix < by_hand < measuring.SQUARES * setting.matrix


def test_the_peak_is_the_memory_held_at_one_time():
    size = 64_000_000  # bytes
    (peak,) = numbers_of_process(f"""
        import torch
        from manyheads.student.bench_written_out_attention import peak_of

        def run():
            for _ in range(3):
                held = torch.ones({size}, dtype=torch.uint8)
            return int(held[-1])

        result, peak = peak_of(run, "cpu")
        assert result == 1
        print(peak)
    """)
    assert size < peak < 2.5 * size  # the new tensor is made before the old one is freed


def test_a_setting_that_does_not_fit_into_memory_is_not_measured(monkeypatch):
    monkeypatch.setattr(measuring, "_bytes", lambda name, file: 4_000_000_000)
    large, small = (BenchSetting(T, "float32", backward=False) for T in (4096, 40))
    left_out, measured = bench_of(large, small).rows
    assert (left_out.by_hand, left_out.instead) == (None, "needs about 4.0 GB, 4.0 GB is free")
    assert measured.faster


@pytest.mark.gpu
def test_sdpa_on_a_gpu_uses_far_less_memory_than_the_matrix():
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
