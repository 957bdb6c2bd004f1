import torch


def mean_and_spread(x):
    return [x.sum(1) / x.shape[1], x.std(1, correction=0)]


def extremes(x):
    ordered = x.sort(-1).values
    found = {"length": x.shape[1], "high": ordered[:, -1], "low": ordered[:, 0], "middle": None}
    if x.shape[1] % 2 == 1:
        found["middle"] = torch.stack([row[len(row) // 2] for row in x])
    return found
