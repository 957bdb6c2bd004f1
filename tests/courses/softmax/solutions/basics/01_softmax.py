# %% [markdown]
# # 1 · Softmax
#
# The softmax of 0 and ln 3 is 1/4 and 3/4: each exponential, divided by the sum of its row's.

# %% tags=["setup"]
import numpy as np


# %% tags=["solution"]
def softmax(x: np.ndarray) -> np.ndarray:
    """Turn each row of (N, C) numbers into shares that sum to 1."""
    ### BEGIN SOLUTION
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)
    ### END SOLUTION
