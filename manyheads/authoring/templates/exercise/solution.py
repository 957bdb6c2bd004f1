# %% [markdown]
# # @@number · @@title
#
# FILL: the lesson, in a few lines: what is asked for, and an example whose numbers a student can follow by hand.
# At its top: how many minutes it takes, what it needs, and what comes next, as links to the notebooks beside it.
# A figure, if one helps, is figures/@@stem.svg beside this file: `![what it shows](figures/@@stem.svg)`.

# %% tags=["setup"]
import @@library


# %% tags=["solution"]
def @@id(x: @@type) -> @@type:
    """FILL: one line that says what it does.

    Args:
        x: (T,), floating point.

    Returns:
        (T,): FILL: what comes out.
    """
    ### BEGIN SOLUTION
    return 2 * x  # FILL: the reference, in place of this line
    ### END SOLUTION


# %% tags=["check"]
if __name__ == "__main__":
    # FILL: the lesson's example
    assert @@id(@@{short}.asarray([1.0, 3.0])).tolist() == [2.0, 6.0], "1, 3 should give 2, 6"
    print("@@id: as the lesson says")

# %% [markdown]
# ### Predict before you run
#
# FILL: a question that a student can guess at, and that the next cell answers.

# %% tags=["predict"]
if __name__ == "__main__":
    try:
        answer = @@id(@@{short}.asarray([1.0, 3.0]))
    except NotImplementedError:
        print("@@id is not written yet, so the answer waits. Keep your guess.")
    else:
        print(f"FILL: the answer in a sentence: {answer.tolist()}")
