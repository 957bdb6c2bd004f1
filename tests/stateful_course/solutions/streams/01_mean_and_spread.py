# %% [markdown]
# # 1 · Mean and spread
#
# Two numbers say most about a row: where its middle is, and how far it reaches.

# %% tags=["setup"]
import torch


# %% tags=["solution"]
def mean_and_spread(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Say of each row where it is and how wide.

    Args:
        x: (B, T), floating point.

    Returns:
        (mean, spread), (B,) each: the mean, and the square root of the mean squared distance from it. spread is None
        where T is 1, for one number has none.
    """
    ### BEGIN SOLUTION
    mean = x.mean(-1)
    spread = (x - mean[:, None]).square().mean(-1).sqrt()
    return mean, spread if x.shape[-1] > 1 else None
    ### END SOLUTION


# %% tags=["check"]
if __name__ == "__main__":
    mean, spread = mean_and_spread(torch.tensor([[1.0, 3.0]]))
    assert (float(mean), float(spread)) == (2.0, 1.0), "1 and 3 are both 1 away from 2"
    print("mean_and_spread: as the lesson says")
