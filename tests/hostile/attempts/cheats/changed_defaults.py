"""Changes the default dtype, device, seed, threads and deterministic flags, and is right otherwise."""
import torch

torch.set_default_dtype(torch.float16)
torch.manual_seed(666)
torch.set_num_threads(64)
torch._C._set_deterministic_algorithms(True)
torch.set_printoptions(precision=1)
torch.backends.cudnn.benchmark = True


def running_mean(x):
    if len(x) == 0:
        raise ValueError("empty")
    return x.cumsum(0) / torch.arange(1, len(x) + 1, dtype=x.dtype)
