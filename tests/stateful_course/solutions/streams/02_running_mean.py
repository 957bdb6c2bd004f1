# %% [markdown]
# # 2 · A running mean that goes on
#
# Numbers that arrive in chunks have the same running mean as all of them at once, if each chunk knows what came before.

# %% tags=["setup"]
import torch
from torch import nn


# %% tags=["solution"]
class RunningMean(nn.Module):
    """The running mean of projected tokens, chunk by chunk.

    forward(x, state=None): x (B, T, C) are the next T tokens. Returns (means, state): means (B, T, C), at each position the
    mean of all tokens so far, and whatever the next call needs. state: None at the start. A call does not change the state
    that it is given. A chunk without tokens is refused with a ValueError.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.proj = nn.Linear(width, width, bias=False)

    def forward(self, x, state=None):
        ### BEGIN SOLUTION
        if x.shape[1] == 0:
            raise ValueError("the chunk has 0 tokens; at least 1 is needed")
        total, count = state if state is not None else (0.0, 0)
        sums = self.proj(x).cumsum(1) + total
        counts = torch.arange(1, x.shape[1] + 1, dtype=x.dtype, device=x.device) + count
        return sums / counts[:, None], (sums[:, -1:], count + x.shape[1])
        ### END SOLUTION


# %% tags=["check"]
if __name__ == "__main__":
    mean, chunk = RunningMean(2), torch.ones(1, 3, 2)
    _, seen = mean(chunk)
    assert mean(chunk, seen)[0].shape == (1, 3, 2), "a chunk of three tokens has three means"
    print("RunningMean: as the lesson says")
