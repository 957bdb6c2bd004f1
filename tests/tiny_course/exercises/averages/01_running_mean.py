# %% [markdown]
# # 1 · The running mean
#
# The running mean of 2, 4, 9 is 2, 3, 5: at every position, the mean of all that came so far.

# %% tags=["setup"]
import torch


# %% tags=["solution"]
def running_mean(x: torch.Tensor) -> torch.Tensor:
    """Average all numbers up to each position.

    Args:
        x: (T,), floating point.

    Returns:
        (T,): at position t the mean of x[0] … x[t].

    Raises:
        ValueError: if x has no numbers.
    """
    # YOUR CODE HERE
    raise NotImplementedError("write this part")


# %% tags=["check"]
if __name__ == "__main__":
    assert running_mean(torch.tensor([2.0, 4.0, 9.0])).tolist() == [2.0, 3.0, 5.0], "2, 4, 9 should give 2, 3, 5"
    print("running_mean: as the lesson says")
