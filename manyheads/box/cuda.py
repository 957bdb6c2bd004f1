"""Starting CUDA in an attempt's process, before anything of a student's stands in it: its time is not the attempt's."""

from __future__ import annotations

from .connection import AttemptEnded, Connection
from .names import BoxUnavailable
from .worker.limits import CUDA_SECONDS
from .worker.messages import Call, Load

_SOURCE = """
import torch

def starts():
    with torch.enable_grad():  # a call computes without
        x = torch.ones(64, 64, device="cuda", requires_grad=True)
        (x @ x).sum().backward()
    return x.grad.sum()
"""
_ANSWER = 2 * 64.0**3  # each entry of x is in 2 · 64 products


def start_cuda(connection: Connection) -> None:
    """Raises BoxUnavailable, with what CUDA said, where it does not start and compute."""
    try:
        connection.ask(Load(_SOURCE, "starts.py"), CUDA_SECONDS)
        reply = connection.ask(Call("starts"), CUDA_SECONDS)
    except AttemptEnded as ended:
        raise BoxUnavailable(f"CUDA does not start in the box ({ended}). Next: course doctor") from None
    answer = reply.outputs[0] if reply.outputs else None
    if answer is None or answer.device != "cuda" or answer.tensor is None or answer.tensor.item() != _ANSWER:
        connection.close()
        said = (reply.raised.message.strip() or reply.raised.type) if reply.raised else "it computed something else"
        raise BoxUnavailable(f"CUDA does not start in the box ({said.splitlines()[0]}). Next: course doctor")
