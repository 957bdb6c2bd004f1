"""The seed of a run: the one that is given, that of the results it goes on with, or a new one."""

from pathlib import Path

import pytest

from manyheads.errors import CourseFault
from manyheads.judge import record_results as room
from manyheads.judge.record_results import seed_of_run

NEW = 123_456


@pytest.fixture(autouse=True)
def drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seed that is drawn is this one."""
    monkeypatch.setattr(room.secrets, "randbelow", lambda below: NEW)


def results(folder: Path, *seeds: object, assignment: str = "sums") -> Path:
    """Results with these seeds."""
    for i, seed in enumerate(seeds):
        path = folder / f"student{i}" / f"{assignment}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{{"seed": {seed}}}' if seed is not None else "half a fi")
    return folder


@pytest.mark.parametrize(("before", "given", "seed"), [
    pytest.param((), None, NEW, id="a first run draws one"),
    pytest.param((), 0, 0, id="it takes the one that is given, also 0"),
    pytest.param((7, 7), None, 7, id="a run goes on with that of its results"),
    pytest.param((0, 0), None, 0, id="also with 0"),
    pytest.param((3, 7, 7), None, 7, id="of several it takes the most frequent"),
    pytest.param((None, 7), None, 7, id="what is no result has none"),
    pytest.param((7, 7), 3, 3, id="one that is given goes before that of results"),
])  # fmt: skip
def test_a_seed(tmp_path: Path, before: tuple[object, ...], given: int | None, seed: int) -> None:
    assert seed_of_run(results(tmp_path, *before), ["sums"], given, in_part=False) == seed


def test_results_of_another_assignment_are_no_matter(tmp_path: Path) -> None:
    results(tmp_path, 7, assignment="means")
    assert seed_of_run(tmp_path, ["sums"], None, in_part=False) == NEW


@pytest.mark.parametrize("given", [None, 7], ids=["not said", "said"])
def test_where_other_exercises_stay_their_seed_stays(tmp_path: Path, given: int | None) -> None:
    assert seed_of_run(results(tmp_path, 7, 7), ["sums"], given, in_part=True) == 7


@pytest.mark.parametrize(("before", "given"), [((7, 7), 3), ((3, 7), None), ((3, 7), 7)])
def test_where_they_have_another_one_that_is_said(tmp_path: Path, before: tuple[int, ...], given: int | None) -> None:
    with pytest.raises(CourseFault, match=r"states one seed\. Next: "):
        seed_of_run(results(tmp_path, *before), ["sums"], given, in_part=True)


def test_without_results_there_is_nothing_to_keep(tmp_path: Path) -> None:
    assert seed_of_run(tmp_path, ["sums"], None, in_part=True) == NEW
    assert seed_of_run(tmp_path, ["sums"], 3, in_part=True) == 3
