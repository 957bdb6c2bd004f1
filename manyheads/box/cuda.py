"""Start CUDA in an attempt's process before student code is loaded, so that its time does not count as the attempt's."""

from __future__ import annotations

from .connection import AttemptEnded, Connection
from .names import BoxUnavailable
from .worker.limits import CUDA_SECONDS
from .worker.messages import Call, Load

_SOURCE = """
import torch

def starts():
    with torch.enable_grad():  # calls run without gradients
        x = torch.ones(64, 64, device="cuda", requires_grad=True)
        (x @ x).sum().backward()
    return x.grad.sum()
"""
_ANSWER = 2 * 64.0**3  # each entry of x is in 2 · 64 products


def start_cuda(connection: Connection) -> None:
    """Start CUDA and compute something. Raises BoxUnavailable, with CUDA's message, if that fails."""
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
