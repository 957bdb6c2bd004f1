"""Checks that one device alone has: elsewhere they do not exist, and they give no points anywhere."""

from pathlib import Path

import pytest
import torch

from manyheads.box.worker.messages import Build, Call, DeviceArgument
from manyheads.checks.cast import cast
from manyheads.checks.marks import Layer, check
from manyheads.diagnosis.agree import is_comparable
from manyheads.judge.run_checks import HiddenChecks

CHECKS = '''
from manyheads.checks import Layer, check

@check(points=1, layer=Layer.SHAPE)
def test_anywhere(attempt):
    """is checked anywhere"""

@check(points=0, layer=Layer.HYGIENE, device="cuda")
def test_on_a_gpu(attempt):
    """is checked on a GPU"""
'''


@pytest.mark.parametrize(("device", "expected"), [("cpu", ["anywhere"]), ("cuda", ["anywhere", "on_a_gpu"])])
def test_a_session_collects_what_its_device_has(tmp_path: Path, device: str, expected: list[str]) -> None:
    file = tmp_path / "test_of_devices.py"
    file.write_text(CHECKS)
    collected = HiddenChecks([file], device).unattempted(file)
    assert [outcome.id for outcome in collected] == expected
    assert sum(outcome.points for outcome in collected) == 1


def test_a_check_of_one_device_with_points_is_refused() -> None:
    with pytest.raises(ValueError, match="a check that runs on cuda alone gives no points"):
        check(points=0.5, layer=Layer.HYGIENE, device="cuda")


def test_a_call_for_a_gpu_says_so_and_keeps_its_tensors_where_they_are() -> None:
    """They travel as bytes of the CPU's; the judge needs no GPU to send them."""
    asked = Call(Build("C", device="meta"), (X, Build("C")), {"y": X}, cotangent=X)
    sent = cast(asked, "float64", "cuda")
    assert sent.device == "cuda"
    assert isinstance(sent.subject, Build)
    assert isinstance(sent.args[1], Build)
    assert (sent.subject.device, sent.args[1].device) == ("meta", "cuda")
    for tensor in (sent.args[0], sent.kwargs["y"], sent.cotangent):
        assert isinstance(tensor, torch.Tensor)
        assert (tensor.device.type, tensor.dtype) == ("cpu", torch.float64)
    assert cast(asked, "float64").device is None


X = torch.ones(2)


@pytest.mark.parametrize(("call", "expected"), [
    pytest.param(Call("f", (X,)), True, id="an ordinary call"),
    pytest.param(Call("f", (X,), autocast="float16"), False, id="half precision"),
    pytest.param(Call("f", (X,), memory=True), False, id="memory"),
    pytest.param(Call("f", (2,), {"device": DeviceArgument("cuda")}), False, id="a GPU by name"),
    pytest.param(Call("f", (2,), {"device": DeviceArgument("cpu")}), True, id="the CPU by name"),
    pytest.param(Call(Build("C", device="cuda"), (X,)), False, id="a module moved to a GPU"),
    pytest.param(Call(Build("C", state={}), (X,)), True, id="a module that stays"),
])  # fmt: skip
def test_what_only_a_device_shows_is_never_compared_with_mutants(call: Call, expected: bool) -> None:
    assert is_comparable(call) is expected
