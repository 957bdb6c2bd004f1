"""Bands of heatmaps as a PNG."""

from __future__ import annotations

import io
import sys

import pytest
import torch

from manyheads.errors import CourseFault
from manyheads.report.figures import png
from manyheads.student.plot_content import Band, Panel, difference

WEIGHTS = torch.eye(4).flip(0) * 0.75
SCORES = torch.tensor([[1.0, float("-inf")], [float("nan"), -2.0]])


def band() -> Band:
    panels = Panel("expected", WEIGHTS, "weights"), Panel("yours", WEIGHTS.T, "weights")
    return Band(
        "weights",
        (*panels, Panel("yours − expected", difference(WEIGHTS.T, WEIGHTS), "difference")),
        "query position",
        "key position",
    )


def pixels(data: bytes) -> torch.Tensor:
    """(height, width, 3)"""
    import numpy as np
    from PIL import Image

    return torch.from_numpy(np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).copy())


def test_a_band_is_a_png_of_some_size() -> None:
    height, width, _ = pixels(png([band()], "Weights")).shape
    assert 200 < height < 500
    assert 400 < width < 1200


def test_expected_and_yours_have_one_scale_so_that_a_colour_means_one_number() -> None:
    """0.75 is as bright in both, though yours holds a 1 as well."""
    brighter = WEIGHTS.clone()
    brighter[0, 0] = 1.0
    shown = Band("", (Panel("", WEIGHTS * 100, "numbers"), Panel("", brighter * 100, "numbers")), "", "")
    image = pixels(png([shown], ""))
    left, right = image[:, : image.shape[1] * 9 // 20], image[:, image.shape[1] * 9 // 20 :]
    brightest = (image == image.new_tensor([253, 231, 36])).all(-1).nonzero()  # the end of viridis
    assert len(brightest)
    assert not (left == left.new_tensor([253, 231, 36])).all(-1).any()
    assert (right == right.new_tensor([253, 231, 36])).all(-1).any()


def test_hidden_scores_are_grey_and_not_a_number_is_written() -> None:
    image = pixels(png([Band("scores", (Panel("scores", SCORES),), "", "")], ""))
    assert (image == image.new_tensor([0xD0, 0xD0, 0xD0])).all(-1).sum() > 1000


def test_a_single_row_has_a_single_position() -> None:
    from matplotlib.figure import Figure

    drawn: list[list[float]] = []
    with pytest.MonkeyPatch.context() as patched:
        saved = Figure.savefig
        patched.setattr(
            Figure,
            "savefig",
            lambda self, *args, **rest: (drawn.append(list(self.axes[0].get_yticks())), saved(self, *args, **rest)),
        )
        png([Band("one token", (Panel("yours", WEIGHTS[:1], "weights"),), "", "")], "")
    assert drawn == [[0.0]]


def test_what_cannot_be_shown_says_why_and_words_may_stand_at_the_axes() -> None:
    words = ("The", "keys", "were", "here")
    labelled = Band("what heads attend to", (Panel("head 0", WEIGHTS, "weights"),), "", "", words)
    missing = Band("nothing", (Panel("yours", None, note="your code raised ValueError"),), "", "")
    assert png([labelled, missing], "both").startswith(b"\x89PNG")


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(CourseFault, match=r"matplotlib, which is not installed\. Next: pip install matplotlib$"):
        png([band()], "")
