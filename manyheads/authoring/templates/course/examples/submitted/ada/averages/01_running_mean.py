import torch


def running_mean(x: torch.Tensor) -> torch.Tensor:
    if len(x) == 0:
        raise ValueError("no numbers")
    return torch.stack([x[: t + 1].mean() for t in range(len(x))])
