"""Attempts that pass off tensors that are not what they seem."""
import itertools, os, torch

# aliased: Its own argument, changed.
# Earns 0: values differ
def running_mean(x):
    return x.detach().zero_()

# class_in_place_of_a_function: Defines the name as a class, which is callable too.
# Earns 0: yours returned an object of another type
class running_mean:
    def __init__(self, x):
        self.x = x

# complex: Complex.
# Earns 0: yours returned a strided complex128 tensor
def running_mean(x):
    return torch.complex((x.cumsum(0) / x.new_ones(len(x)).cumsum(0)), torch.ones_like(x))

# empty_and_enormous: Empty and enormous.
# Earns 0: something that is not an answer: it cannot be read
def running_mean(x):
    return torch.empty(0, 1 << 62)

# float32_for_float64: Right to rounding, and the dtype is no check of this exercise.
# Earns 4:
def running_mean(x):
    assert len(x); return (x.cumsum(0) / x.new_ones(len(x)).cumsum(0)).float()

# float64_for_float32: Right, and the dtype is no check of this exercise.
# Earns 4:
def running_mean(x):
    assert len(x); x = x.to(torch.float64); return (x.cumsum(0) / x.new_ones(len(x)).cumsum(0))

# float8: Float8.
# Earns 0: not an answer|yours returned
def running_mean(x):
    return x.detach().to(torch.float8_e4m3fn)

# generator: Generator.
# Earns 0: yours returned a generator
def running_mean(x):
    return (i for i in itertools.count())

# huge_integer: Huge integer.
# Earns 0: raised OverflowError
def running_mean(x):
    return 10**400

# list_of_right_numbers: List of right numbers.
# Earns 0: yours returned a list
def running_mean(x):
    return (x.cumsum(0) / x.new_ones(len(x)).cumsum(0)).tolist()

# many_axes: Many axes.
# Earns 0: should have shape|values differ
def running_mean(x):
    return x[:1].reshape([1] * 60)

# meta: Meta.
# Earns 0: on the meta device, without numbers
def running_mean(x):
    return x.to("meta")

# nan_and_inf: Nan and inf.
# Earns 0: values differ.*the most at
def running_mean(x):
    return x * torch.tensor([float("nan"), float("inf")] * 8, dtype=x.dtype)[: len(x)]

# nested: Nested.
# Earns 0: raised RuntimeError|yours returned
def running_mean(x):
    return torch.nested.nested_tensor([x, x[:1]])

# nothing: Nothing.
# Earns 0: yours returned None
def running_mean(x):
    return None

# numpy_array: Numpy array.
# Earns 0: yours returned an? ndarray
def running_mean(x):
    return x.detach().numpy()

# parameter: Right but for the gradient.
# Earns 3: no gradient reaches the first argument
def running_mean(x):
    assert len(x); return torch.nn.Parameter((x.cumsum(0) / x.new_ones(len(x)).cumsum(0)).detach())

# quantised: Quantised.
# Earns 0: yours returned a strided qint8 tensor
def running_mean(x):
    return torch.quantize_per_tensor(x.detach().float(), 0.1, 0, torch.qint8)

# refusal_in_half_a_letter: Answers rightly, and refuses with a text that no encoding can write.
# Right: what no encoding can write is a text like any other.
# Earns 4:
def running_mean(x):
    if not len(x):
        raise ValueError(os.fsdecode(b"caf\xe9") + "\ud800\0" * 10_000)
    return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)

# sparse: Sparse.
# Earns 0: yours returned a sparse_coo float64 tensor
def running_mean(x):
    return (x.cumsum(0) / x.new_ones(len(x)).cumsum(0)).to_sparse()

# subclassed: Returns a tensor subclass that holds the right numbers: nothing is wrong with that.
# It holds the right numbers.
# Earns 4:
class Mean(torch.Tensor):
    """Adds nothing."""

def running_mean(x):
    if len(x) == 0:
        raise ValueError("empty")
    return (x.cumsum(0) / x.new_ones(len(x)).cumsum(0)).as_subclass(Mean)

# tuple_of_tensors: Tuple of tensors.
# Earns 0: yours returned a tuple
def running_mean(x):
    return x, x

# type_that_lies: Returns an object that says it is a tensor.
# Earns 0: raised AttributeError|yours returned
class Liar:
    __class__ = torch.Tensor
    shape = torch.Size([7])

def running_mean(x):
    return Liar()

# zero_stride: Elements that take the memory of one.
# Earns 0: more memory was asked for|ended its own process|SIGKILL
def running_mean(x):
    return torch.zeros(1).expand(1 << 45)
