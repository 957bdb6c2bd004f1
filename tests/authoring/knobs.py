"""The tiny course's mutants in the other form: faults that are knobs of one function, and can be combined."""

KNOBS = """\
import torch


def make(*, count="so_far", reach="up_to_here", form="all", empty="refused", graph="kept"):
    def running_mean(x):
        if empty == "refused" and x.numel() == 0:
            raise ValueError("nothing to average")
        source = x.detach() if graph == "cut" else x
        total = source.cumsum(0)
        if reach == "before":
            total = total - source
        if reach == "all":
            total = source.sum().expand_as(source)
        seen = torch.arange(1, len(x) + 1, dtype=x.dtype)
        mean = total / (seen if count == "so_far" else max(len(x), 1) if count == "all" else 1)
        return mean[-1:] if form == "last" else mean

    return {"running_mean": running_mean}


MUTANTS = (
    ("counts_all", {"count": "all"}),
    ("sum_not_mean", {"count": "one"}),
    ("excludes_self", {"reach": "before"}),
    ("sees_future", {"reach": "all"}),
    ("only_last", {"form": "last"}),
    ("empty_unchecked", {"empty": "accepted"}),
    ("gradient_cut", {"graph": "cut"}),
)
"""
