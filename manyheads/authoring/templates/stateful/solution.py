# %% [markdown]
# # @@number · @@title
#
# FILL: the lesson, in a few lines: what is asked for, and an example whose numbers a student can follow by hand.
# At its head: how many minutes it takes, what it needs, and what comes next, as links to the notebooks beside it.
# A figure, if one helps, is figures/@@stem.svg beside this file: `![what it shows](figures/@@stem.svg)`.

# %% tags=["setup"]
import torch
from torch import nn


# %% tags=["solution"]
class @@class(nn.Module):
    """FILL: one line that says what it does. Its attribute proj is an nn.Linear (C → C) without bias.

    forward(x, state=None): x (B, T, C) are the next T tokens. Returns (y, state): FILL: what y is, (B, T, C), and whatever the
    next call needs. state: None at the start. A call does not change the state that it is given.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        ### BEGIN SOLUTION
        self.proj = nn.Linear(width, width, bias=False)
        ### END SOLUTION

    def forward(self, x: torch.Tensor, state: object = None) -> tuple[torch.Tensor, object]:
        ### BEGIN SOLUTION
        y = self.proj(x).cumsum(1) + (0 if state is None else state)
        return y, y[:, -1:]  # FILL: the reference, in place of these lines
        ### END SOLUTION


# %% tags=["check"]
if __name__ == "__main__":
    # FILL: the lesson's example
    layer, chunk = @@class(2), torch.ones(1, 3, 2)
    y, state = layer(chunk)
    both, _ = layer(torch.cat([chunk, chunk], 1))
    assert torch.allclose(layer(chunk, state)[0], both[:, 3:]), "two chunks should give what both give at once"
    print("@@class: as the lesson says")

# %% [markdown]
# ### Predict before you run
#
# FILL: a question that a student can guess at, and that the next cell answers.

# %% tags=["predict"]
if __name__ == "__main__":
    try:
        y, _ = @@class(2)(torch.ones(1, 3, 2))
    except NotImplementedError:
        print("@@class is not written yet, so the answer waits. Keep your guess.")
    else:
        print(f"FILL: the answer in a sentence: {tuple(y.shape)}")
