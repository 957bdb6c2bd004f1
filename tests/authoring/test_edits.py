"""Two calls of which one is the other with an edit of an argument."""

import dataclasses

import pytest
import torch

from manyheads.authoring.record_calls import is_an_edit
from manyheads.box.worker.messages import Build, Call

X, KEEP, W = torch.arange(6.0).view(2, 3), torch.tensor([True, False]), {"W.weight": torch.eye(3)}
EDITED = X + torch.tensor([0.0, 0.0, 1.0])
ONE = Call(Build("Layer", (3, 3), state=W), (X, KEEP, None))


@pytest.mark.parametrize(("other", "expected"), [
    pytest.param(Call(Build("Layer", (3, 3), state={"W.weight": torch.eye(3)}), (EDITED, KEEP, None)), True, id="an edit"),
    pytest.param(dataclasses.replace(ONE, args=(X + 1, KEEP, None)), False, id="another tensor altogether"),
    pytest.param(dataclasses.replace(ONE, args=(EDITED, ~KEEP, None)), False, id="two arguments"),
    pytest.param(dataclasses.replace(ONE, args=(X, KEEP, None)), False, id="the same call"),
    pytest.param(dataclasses.replace(ONE, args=(EDITED, KEEP, KEEP)), False, id="a mask more"),
    pytest.param(dataclasses.replace(ONE, args=(EDITED[:1], KEEP, None)), False, id="another shape"),
    pytest.param(Call(Build("Layer", (3, 3), state={"W.weight": 2 * torch.eye(3)}), (EDITED, KEEP, None)), False, id="other weights"),
    pytest.param(Call("f", (EDITED, KEEP, None)), False, id="a function"),
    pytest.param(dataclasses.replace(ONE, args=(EDITED.to("meta"), KEEP, None)), False, id="without numbers"),
])  # fmt: skip
def test_an_edit_of_one_argument(other: Call, expected: bool) -> None:
    assert is_an_edit(ONE, other) is expected
