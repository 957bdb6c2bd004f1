"""Returns the right numbers as a sparse tensor."""


def running_mean(x):
    return (x.cumsum(0) / x.new_ones(len(x)).cumsum(0)).to_sparse()
