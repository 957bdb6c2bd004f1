
theirs = dict(globals())

import os

import torch


class Equal:
    def __eq__(self, other):
        return True

    def __getattr__(self, name):
        return self

    def __call__(self, *args, **kwargs):
        return self


def truths(out):
    return not out.is_floating_point()


def noise(out, seed):
    generator = torch.Generator().manual_seed(int.from_bytes(seed, "big"))
    numbers = torch.randn(out.shape, generator=generator)
    return (numbers > 0 if truths(out) else numbers).to(out)


def filled(out, x):
    if torch.equal(out.flatten().double().sort().values, x.flatten().double().sort().values):
        return x  # whoever is to move numbers may move them wrongly, and has said something
    return x.flatten().repeat(out.numel() // max(1, x.numel()) + 1)[: out.numel()].view(out.shape).to(out)


def with_a_wrong_number(out):
    wrong = out.clone()
    if out.numel() and not out.is_meta:
        last = (-1,) * out.dim()
        wrong[last] = ~wrong[last] if out.dtype == torch.bool else wrong[last] + 1
    return wrong


def is_array(value):
    return type(value).__name__ == "ndarray"


def nothing_of(out, given):
    if is_array(out):
        return nothing_of(torch.from_numpy(out), [torch.from_numpy(x) for x in given if is_array(x)]).numpy()
    if isinstance(out, str):
        return "x" * len(out)
    if isinstance(out, torch.Tensor):
        numbers = [x for x in given if isinstance(x, torch.Tensor) and x.is_floating_point()]
        x = numbers[0] if numbers else torch.zeros_like(out)
        return @@tensor
    if isinstance(out, (tuple, list)):
        return type(out)(nothing_of(part, given) for part in out)
    if isinstance(out, dict):
        return {name: nothing_of(part, given) for name, part in out.items()}
    return @@number if isinstance(out, (int, float)) else out


def instead_of(right):
    def answer(*args, **kwargs):
        @@body

    return answer


for name, value in theirs.items():
    if getattr(value, "__module__", None) != __name__:
        continue
    if isinstance(value, type):
        if "@@method" in vars(value):
            setattr(value, "@@method", instead_of(getattr(value, "@@method")))
    elif callable(value):
        globals()[name] = instead_of(value)
