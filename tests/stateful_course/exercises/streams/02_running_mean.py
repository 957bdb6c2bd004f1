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
        # YOUR CODE HERE
        raise NotImplementedError()


# %% tags=["check"]
if __name__ == "__main__":
    mean, chunk = RunningMean(2), torch.ones(1, 3, 2)
    _, seen = mean(chunk)
    assert mean(chunk, seen)[0].shape == (1, 3, 2), "a chunk of three tokens has three means"
    print("RunningMean: as the lesson says")
