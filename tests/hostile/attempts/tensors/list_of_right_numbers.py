"""Returns a list."""


def running_mean(x):
    return (x.cumsum(0) / x.new_ones(len(x)).cumsum(0)).tolist()
