"""The gallery says what was measured: every wrong attempt beside the right one of its seed, and nothing hidden."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # bench is no part of the installed package

from bench.gallery.costs import Cost, Gallery
from bench.gallery.entries import RIGHT_ONES, WRONG_ONES, Entry, place, title
from bench.gallery.page import DATA, PAGE, PICTURE, beside, measured, rewrite_page
from bench.gallery.picture import draw
from bench.gallery.runs import OTHER_DRAWS, SEEDS, Run, run
from manyheads.authoring.leaks import hidden_of
from manyheads.student.training_plan import EVALUATE_EVERY, plan_for, read_text

pytestmark = pytest.mark.journey  # models are trained

GALLERY = Gallery.model_validate_json(DATA.read_text(encoding="utf-8"))


def ran(id_: str, seed: int, writing: float, draws: int | None = None, stopped: str = "") -> Run:
    end = {EVALUATE_EVERY: writing}
    return Run(
        id=id_, seed=seed, draws=seed if draws is None else draws, learning=end, writing=end, text="", stopped=stopped
    )


def cost_of(*differences: float) -> Cost:
    """With luck of 0.02."""
    right = [ran("right", seed, 1.5) for seed in range(3)]
    other = ran("right", 0, 1.52, draws=OTHER_DRAWS)
    wrong = [ran("wrong_view", seed, 1.5 + apart) for seed, apart in enumerate(differences)]
    return Gallery(runs=(*right, other, *wrong), made="today").cost(Entry("wrong_view"))


@pytest.mark.parametrize(
    ("differences", "words"),
    [
        pytest.param((0.2, 0.3, 0.1), "**+0.20** (+0.10 to +0.30)", id="dearer in every seed"),
        pytest.param((-0.2, -0.3, -0.1), "**−0.20** (−0.30 to −0.10)", id="cheaper in every seed"),
        pytest.param((0.2, 0.3, -0.01), "nothing measurable (−0.01 to +0.30)", id="seeds that disagree"),
        pytest.param((0.01, 0.02, 0.01), "nothing measurable (+0.01 to +0.02)", id="no more than luck"),
    ],
)
def test_a_cost_is_more_than_luck_in_every_seed(differences: tuple[float, ...], words: str) -> None:
    assert beside(cost_of(*differences)) == words


def test_one_that_stopped_does_not_hang_in_the_gallery() -> None:
    right = [ran("right", 0, 1.5), ran("right", 0, 1.6, draws=OTHER_DRAWS)]
    gallery = Gallery(runs=(*right, ran("wrong_view", 0, 2.0), ran("scale_missing", 0, 0.0, stopped="NaN")), made="")
    assert [cost.entry.id for cost in gallery.costs()] == ["wrong_view"]


def test_dropout_is_compared_with_dropout() -> None:
    runs = (
        ran("right", 0, 1.0),
        ran("right", 0, 1.1, OTHER_DRAWS),
        ran("right, dropout", 0, 2.0),
        ran("dropout_missing", 0, 3.0),
    )
    (cost,) = Gallery(runs=runs, made="").costs()
    assert cost.apart == 1.0


def test_every_wrong_attempt_was_measured_to_the_end_with_every_seed() -> None:
    last = plan_for(read_text()).steps
    for entry in (*RIGHT_ONES, *WRONG_ONES):
        runs = GALLERY.of(entry)
        assert [each.seed for each in runs] == list(SEEDS), entry.id
        assert all(each.stopped or max(each.writing) == last for each in runs), entry.id


def test_the_page_says_what_was_measured(tmp_path: Path) -> None:
    page = tmp_path / "gallery.md"
    shutil.copy(PAGE, page)
    rewrite_page(GALLERY, page)
    assert page.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8"), "Next: python -m bench.gallery --draw"
    for entry in WRONG_ONES:
        assert f"| {title(entry)} |" in measured(GALLERY), entry.id


def test_the_page_holds_no_line_of_a_solution_check_or_mutant() -> None:
    hidden = hidden_of(place()[0])
    assert hidden.sentence("docs/gallery.md", PAGE.read_bytes()) is None
    assert hidden.sentence("docs/gallery.json", DATA.read_bytes()) is None


def test_the_figure_is_drawn_from_the_data(tmp_path: Path) -> None:
    draw(GALLERY, tmp_path / "gallery.png")
    assert (tmp_path / "gallery.png").read_bytes().startswith(b"\x89PNG")
    assert PICTURE.stat().st_size < 1_000_000


def test_a_run_ends_in_a_trained_model_or_in_a_sentence(tmp_path: Path) -> None:
    """A mutant that computes the right numbers is at home in what the right one learned; others are not."""
    right = run(RIGHT_ONES[0], 0, 0, tmp_path, steps=EVALUATE_EVERY)
    assert list(right.writing) == [EVALUATE_EVERY]
    recorded = GALLERY.of(RIGHT_ONES[0])[0]
    assert right.writing[EVALUATE_EVERY] == pytest.approx(recorded.writing[EVALUATE_EVERY], abs=0.01)
    same, other = (run(Entry(id_), 0, 0, tmp_path, steps=1) for id_ in ("delegated", "wrong_view"))
    assert same.transplanted == pytest.approx(right.writing[EVALUATE_EVERY], abs=1e-3)
    assert other.transplanted is not None
    assert other.transplanted > right.writing[EVALUATE_EVERY] + 0.01
    stopped = run(Entry("mask_nan"), 0, 0, tmp_path, steps=1)
    assert stopped.stopped == "The loss became NaN (not a number) at step 1 of 600: there is nothing to learn from."
    assert run(Entry("params_extra"), 0, 0, tmp_path, steps=1).transplanted is None
