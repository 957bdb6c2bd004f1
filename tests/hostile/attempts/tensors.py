"""Attempts that pass off tensors that are not what they seem."""
import itertools, os, torch

# class_in_place_of_a_function: Defines the name as a class, which is callable too.
class running_mean:
    def __init__(self, x):
        self.x = x

# refusal_in_half_a_letter: Answers rightly, and refuses with a text that no encoding can write.
def running_mean(x):
    if not len(x):
        raise ValueError(os.fsdecode(b"caf\xe9") + "\ud800\0" * 10_000)
    return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)

# subclassed: Returns a tensor subclass that holds the right numbers: nothing is wrong with that.
class Mean(torch.Tensor):
    """Adds nothing."""

def running_mean(x):
    if len(x) == 0:
        raise ValueError("empty")
    return (x.cumsum(0) / x.new_ones(len(x)).cumsum(0)).as_subclass(Mean)

# type_that_lies: Returns an object that says it is a tensor.
class Liar:
    __class__ = torch.Tensor
    shape = torch.Size([7])

def running_mean(x):
    return Liar()
