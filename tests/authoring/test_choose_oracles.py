"""A visible check asks what gives the hidden check's verdict; of two calls one may be the other
with an edit of an argument.
"""

import dataclasses

import pytest
import torch

from manyheads.authoring.choose_recorded_calls import is_an_edit
from manyheads.authoring.choose_visible_oracles import (
    OF_EVERY_CHECK,
    Groups,
    LabelledProgram,
    choose,
    choose_all,
    groups_of,
    groups_within,
)
from manyheads.box.worker.messages import Build, Call
from manyheads.diagnosis.oracles import Oracle

CALLS = (0, 1)
EXPECTED = ((torch.tensor([[1.0, 2.0]]),), (torch.tensor([[1.0, 3.0]]),))
APART = (EXPECTED[0], (EXPECTED[1][0] + 9,))
GROUPS: Groups = groups_of(CALLS, EXPECTED)


def correct_subject(*broken: tuple[Oracle, tuple[int, ...]]) -> LabelledProgram:
    return LabelledProgram(frozenset(), frozenset(broken), is_right=True)


def subject(
    fails: str, *broken: Oracle | tuple[Oracle, tuple[int, ...]], id_: str = ""
) -> LabelledProgram:
    """A mutant that fails these checks; an aspect without calls is broken in the first."""
    differs = frozenset((oracle, (0,)) if isinstance(oracle, str) else oracle for oracle in broken)
    return LabelledProgram(frozenset(fails.split()), differs, id_)


def mutant(fails: bool, *broken: tuple[Oracle, tuple[int, ...]]) -> LabelledProgram:
    return subject("check" if fails else "", *broken)


def chosen_aspects(*subjects: LabelledProgram) -> dict[str, tuple[tuple[int, ...], ...]]:
    """The aspects that are asked, with their calls, but for those of every check."""
    asks = {ask.oracle: ask.calls for ask in choose("check", GROUPS, subjects)}
    return {aspect: calls for aspect, calls in asks.items() if aspect not in OF_EVERY_CHECK}


def test_calls_are_held_together_where_the_reference_relates_their_answers() -> None:
    assert GROUPS["stays"] == [(0, 1)]
    assert groups_of((0, 1), APART)["stays"] == []
    assert GROUPS["values"] == [(0,), (1,)]


def test_an_edit_that_moves_everything_is_held_against_what_does_not_move() -> None:
    everywhere = groups_of((0, 1), APART, edits={(0, 1)})
    assert (everywhere["moves"], everywhere["stays"]) == ([(0, 1)], [])


def test_an_aspect_is_asked_where_more_verdicts_become_right_than_wrong() -> None:
    detected = [mutant(True, ("shape", (0,)), ("values", (0,))) for _ in range(5)]
    wrongly = mutant(False, ("values", (0,)))
    first, second = (mutant(True, ("values", (0,))) for _ in range(2))
    assert "values" in chosen_aspects(*detected, first, second, wrongly)
    assert "values" not in chosen_aspects(*detected, first, wrongly)


FIRST, SECOND = ("values", (0,)), ("values", (1,))


@pytest.mark.parametrize(
    ("subjects", "asked"),
    [
        pytest.param(
            [mutant(True, FIRST), mutant(False, ("dtype", (0,)))],
            {"values": ((0,), (1,))},
            id="what fails the mutants that the hidden check fails",
        ),
        pytest.param(
            [mutant(True, ("shape", (0,)), FIRST)], {"shape": ((0,), (1,))}, id="nothing twice"
        ),
        pytest.param(
            [correct_subject(FIRST), mutant(True, FIRST, SECOND)],
            {"values": ((1,),)},
            id="no call on which a right attempt differs",
        ),
        pytest.param(
            [
                *(mutant(False, FIRST, SECOND) for _ in range(3)),
                mutant(True, FIRST, SECOND, ("stays", (0, 1))),
            ],
            {"stays": ((0, 1),), "moves": ((0, 1),)},
            id="no oracle that mutants violate which pass, and what an edit should move",
        ),
        pytest.param(
            [
                mutant(False, ("moves", (0, 1))),
                mutant(True, FIRST, SECOND, ("stays", (0, 1))),
                *(mutant(False, FIRST, SECOND) for _ in range(3)),
            ],
            {"stays": ((0, 1),)},
            id="not what an edit should move, if a mutant that passes lacks it",
        ),
        pytest.param(
            [correct_subject(SECOND), mutant(False)],
            {"values": ((0,),)},
            id="the recorded values, where no mutant says what a check asks",
        ),
    ],
)
def test_it_asks(
    subjects: list[LabelledProgram], asked: dict[str, tuple[tuple[int, ...], ...]]
) -> None:
    assert chosen_aspects(*subjects) == asked


@pytest.mark.parametrize(
    ("missed", "asked"), [(1, True), (2, False)], ids=["one in ten", "two in ten"]
)
def test_a_check_whose_verdict_recordings_cannot_give_is_left_to_the_grading(
    missed: int, asked: bool
) -> None:
    subjects = [mutant(True, *[("values", (0,))] * (i >= missed)) for i in range(10)]
    assert bool(choose("check", GROUPS, subjects)) is asked


def test_every_check_asks_for_answers_but_where_who_gives_none_passes_the_hidden_one() -> None:
    passes = mutant(False, ("answered", (1,)))
    asks = {
        ask.oracle: ask.calls
        for ask in choose("check", GROUPS, [mutant(True, ("values", (0,))), passes])
    }
    assert asks["answered"] == ((0,),)
    assert asks["kind"] == ((0,), (1,))


def test_a_check_that_misses_what_others_see_is_asked_last() -> None:
    """Where values are wrong, recordings do not tell what else a check of dropout fails for."""

    wrong_values = [subject("values dropout", "values") for _ in range(5)]
    undropped, passes = (
        subject("dropout", "dtype"),
        [subject("values", "values", "dtype") for _ in range(5)],
    )
    chosen = choose_all({"values": GROUPS, "dropout": GROUPS}, [*wrong_values, undropped, *passes])
    assert not chosen["values"].is_last
    assert chosen["dropout"].is_last
    assert "dtype" in {ask.oracle for ask in chosen["dropout"].asks}


def test_a_check_that_fails_nobody_whom_others_pass_is_left_to_the_grading() -> None:
    subjects = [subject("values other", "values") for _ in range(5)]
    groups = {"values": GROUPS, "other": {aspect: [] for aspect in GROUPS}}
    assert choose_all(groups, subjects)["other"].asks == ()


def test_what_dropout_leaves_is_asked_last_at_most() -> None:
    """Once, a check that asked this first, and nothing else, passed who drops the answer in place
    of the weights.
    """
    groups: Groups = {**dict.fromkeys(GROUPS, ()), "struck": [(0,)], "dropped": [(0, 1)]}
    struck = [subject("drops", "struck") for _ in range(9)]
    chosen = choose_all({"drops": groups}, [*struck, subject("drops", ("dropped", (0, 1)))])[
        "drops"
    ]
    assert chosen.is_last
    assert {ask.oracle for ask in chosen.asks} == {"struck", "dropped"}


def test_a_check_that_sees_little_but_what_others_see_is_asked_last() -> None:
    """Once, it was right about so many whose values are wrong that a dropout that was left out,
    alone, went unseen.
    """

    groups: Groups = {
        **dict.fromkeys(GROUPS, ()),
        "values": [(0,)],
        "finite": [(0,)],
        "struck": [(0,)],
    }
    of_values: Groups = {**groups, "struck": ()}
    wrong_values = [subject("values drops", "values", "finite") for _ in range(40)]
    undropped = [subject("drops", "struck") for _ in range(2)]
    chosen = choose_all({"values": of_values, "drops": groups}, [*wrong_values, *undropped])
    assert not chosen["values"].is_last
    assert chosen["drops"].is_last
    assert "struck" in {ask.oracle for ask in chosen["drops"].asks}


def test_an_aspect_means_the_misconception_of_all_who_break_it() -> None:
    mutation: tuple[Oracle, tuple[int, ...]] = ("mutated", (0,))
    two: tuple[Oracle, tuple[int, ...]] = ("dtype", (1,))
    subjects = [
        subject("check", mutation, two, id_="a"),
        subject("check", mutation, id_="a"),
        subject("check", two, id_="b"),
    ]
    means = {ask.oracle: ask.means for ask in choose_all({"check": GROUPS}, subjects)["check"].asks}
    assert (means["mutated"], means["dtype"], means.get("values", "")) == ("a", "", "")


def test_of_a_difference_that_belongs_to_no_check_its_kind_is_asked() -> None:
    expected = (*EXPECTED, (torch.tensor(1.0),))
    groups = groups_within(groups_of((0, 1, 2), expected), (0, 1))
    assert (groups["kind"], groups["shape"]) == ([(0,), (1,), (2,)], [(0,), (1,)])
    asks = choose_all(
        {"check": groups}, [mutant(True, ("kind", (2,))), mutant(True, ("difference", (0, 1, 2)))]
    )
    assert {ask.oracle: ask.calls for ask in asks["check"].asks}["kind"] == ((0,), (1,), (2,))


def test_what_a_kind_means_is_told() -> None:
    asks = choose_all({"check": GROUPS}, [subject("check", "kind", id_="interface")])["check"].asks
    (oracle_use,) = (ask for ask in asks if ask.oracle == "kind")
    assert oracle_use.means == "interface"


def test_more_is_asked_of_a_mutant_that_nothing_sees() -> None:
    detected, unseen = (
        [subject("check", "shape") for _ in range(20)],
        [subject("check", "values") for _ in range(2)],
    )
    elsewhere = subject("other", "values", ("dtype", (1,)))
    groups = {"check": GROUPS, "other": GROUPS}
    oracle_uses = choose_all(groups, [*detected, *unseen, elsewhere])["check"].asks
    assert [ask.calls for ask in oracle_uses if ask.oracle == "values"] == [((0,),)]
    alone = subject("", "values")
    assert "values" not in {
        ask.oracle for ask in choose_all(groups, [*detected, *unseen, alone])["check"].asks
    }


X, KEEP, W = torch.arange(6.0).view(2, 3), torch.tensor([True, False]), {"W.weight": torch.eye(3)}
EDITED = X + torch.tensor([0.0, 0.0, 1.0])
ONE = Call(Build("Layer", (3, 3), state=W), (X, KEEP, None))


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        pytest.param(
            Call(Build("Layer", (3, 3), state={"W.weight": torch.eye(3)}), (EDITED, KEEP, None)),
            True,
            id="an edit",
        ),
        pytest.param(
            dataclasses.replace(ONE, args=(X + 1, KEEP, None)),
            False,
            id="another tensor altogether",
        ),
        pytest.param(
            dataclasses.replace(ONE, args=(EDITED, ~KEEP, None)), False, id="two arguments"
        ),
        pytest.param(dataclasses.replace(ONE, args=(X, KEEP, None)), False, id="the same call"),
        pytest.param(dataclasses.replace(ONE, args=(EDITED, KEEP, KEEP)), False, id="a mask more"),
        pytest.param(
            dataclasses.replace(ONE, args=(EDITED[:1], KEEP, None)), False, id="another shape"
        ),
        pytest.param(
            Call(
                Build("Layer", (3, 3), state={"W.weight": 2 * torch.eye(3)}), (EDITED, KEEP, None)
            ),
            False,
            id="other weights",
        ),
        pytest.param(Call("f", (EDITED, KEEP, None)), False, id="a function"),
        pytest.param(
            dataclasses.replace(ONE, args=(EDITED.to("meta"), KEEP, None)),
            False,
            id="without numbers",
        ),
    ],
)
def test_an_edit_of_one_argument(other: Call, expected: bool) -> None:
    assert is_an_edit(ONE, other) is expected
    assert not is_an_edit(
        *(Call(name, (torch.empty(size, device="meta"),)) for name, size in (("f", 2), ("g", 3)))
    )
