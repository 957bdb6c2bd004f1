"""A call at other sizes: what belongs together changes together."""

import torch

from manyheads.box.worker.messages import Build, Call, StandIn
from manyheads.student.resize import layouts


def test_a_call_at_other_sizes_keeps_what_belongs_together() -> None:
    box = StandIn({"qkv": torch.ones(30, 10), "proj": torch.ones(10, 10)}, {"n_head": 2, "head_dim": 5})
    layout = next(layouts(Call("f", (box, torch.ones(4, 7, 10)), cotangent=torch.ones(4, 7, 10))))
    assert layout.axes == [2, 4, 5, 7]
    sizes = {2: 3, 4: 1, 5: 64, 7: 8}
    call = layout.at(sizes)
    given, x = call.args
    assert isinstance(given, StandIn)
    assert isinstance(x, torch.Tensor)
    assert (given.linears["qkv"].shape, x.shape) == ((576, 192), (1, 8, 192))
    assert dict(given.attributes) == {"n_head": 3, "head_dim": 64}
    assert call.cotangent is None


def test_a_size_may_be_a_multiple_of_one_that_is_given() -> None:
    build = Build("Layer", (15, 3), {"dropout": 0.5}, state={"weight": torch.ones(15, 15)})
    ways = list(layouts(Call(build, (torch.ones(2, 15),))))
    assert [way.axes for way in ways] == [[2, 3, 15], [2, 3, 5]]
    subject = ways[1].at({2: 7, 3: 4, 5: 6}).subject
    assert isinstance(subject, Build)
    assert (subject.args, dict(subject.kwargs)) == ((24, 4), {"dropout": 0.5})
