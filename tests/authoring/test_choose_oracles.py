"""Internal: a released course of few mutants cannot show each reason to ask an oracle.

A visible check asks what gives the hidden check's verdict. Of two calls one may be the other with
an edit of an argument.
"""

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
from manyheads.diagnosis.oracles import Oracle, OracleUse
from tests.make import cases

CALLS = (0, 1)
EXPECTED = ((torch.tensor([[1.0, 2.0]]),), (torch.tensor([[1.0, 3.0]]),))
APART = (EXPECTED[0], (EXPECTED[1][0] + 9,))
GROUPS: Groups = groups_of(CALLS, EXPECTED)


FIRST, SECOND = ("values", (0,)), ("values", (1,))


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


def uses_of(
    check: str, groups: dict[str, Groups], *subjects: LabelledProgram
) -> dict[str, OracleUse]:
    """What a check asks, by oracle."""
    return {use.oracle: use for use in choose_all(groups, subjects)[check].asks}


def chosen_aspects(*subjects: LabelledProgram) -> dict[str, tuple[tuple[int, ...], ...]]:
    """The aspects that are asked, with their calls, but for those of every check."""
    uses = choose("check", GROUPS, subjects)
    return {use.oracle: use.calls for use in uses if use.oracle not in OF_EVERY_CHECK}


def test_calls_are_held_together_where_the_reference_relates_their_answers():
    assert GROUPS["stays"] == [(0, 1)]
    assert groups_of((0, 1), APART)["stays"] == []
    assert GROUPS["values"] == [(0,), (1,)]


def test_an_edit_that_moves_everything_is_held_against_what_does_not_move():
    everywhere = groups_of((0, 1), APART, edits={(0, 1)})
    assert (everywhere["moves"], everywhere["stays"]) == ([(0, 1)], [])


def test_an_aspect_is_asked_where_more_verdicts_become_right_than_wrong():
    subjects = [mutant(True, ("shape", (0,)), FIRST) for _ in range(5)]
    subjects += [mutant(False, FIRST), mutant(True, FIRST)]
    assert "values" not in chosen_aspects(*subjects)
    assert "values" in chosen_aspects(*subjects, mutant(True, FIRST))


@cases(
    "subjects, asked",
    {
        "what fails the mutants that the hidden check fails": (
            [mutant(True, FIRST), mutant(False, ("dtype", (0,)))],
            {"values": ((0,), (1,))},
        ),
        "nothing twice": ([mutant(True, ("shape", (0,)), FIRST)], {"shape": ((0,), (1,))}),
        "no call on which a right attempt differs": (
            [correct_subject(FIRST), mutant(True, FIRST, SECOND)],
            {"values": ((1,),)},
        ),
        "no oracle that mutants violate which pass, and what an edit should move": (
            [
                *(mutant(False, FIRST, SECOND) for _ in range(3)),
                mutant(True, FIRST, SECOND, ("stays", (0, 1))),
            ],
            {"stays": ((0, 1),), "moves": ((0, 1),)},
        ),
        "not what an edit should move, if a mutant that passes lacks it": (
            [
                mutant(False, ("moves", (0, 1))),
                mutant(True, FIRST, SECOND, ("stays", (0, 1))),
                *(mutant(False, FIRST, SECOND) for _ in range(3)),
            ],
            {"stays": ((0, 1),)},
        ),
        "the recorded values, where no mutant says what a check asks": (
            [correct_subject(SECOND), mutant(False)],
            {"values": ((0,),)},
        ),
    },
)
def test_it_asks(subjects, asked):
    assert chosen_aspects(*subjects) == asked


@cases("missed, asked", {"one in ten": (1, True), "two in ten": (2, False)})
def test_a_check_whose_verdict_recordings_cannot_give_is_left_to_the_grading(missed, asked):
    subjects = [mutant(True, *[("values", (0,))] * (i >= missed)) for i in range(10)]
    assert bool(choose("check", GROUPS, subjects)) is asked


def test_every_check_asks_for_answers_but_where_who_gives_none_passes_the_hidden_one():
    passes = mutant(False, ("answered", (1,)))
    uses = {use.oracle: use.calls for use in choose("check", GROUPS, [mutant(True, FIRST), passes])}
    assert (uses["answered"], uses["kind"]) == (((0,),), ((0,), (1,)))


def test_a_check_that_misses_what_others_see_is_asked_last():
    """Where values are wrong, recordings do not tell what else a check of dropout fails for."""
    subjects = [subject("values dropout", "values") for _ in range(5)] + [
        subject("dropout", "dtype")
    ]
    subjects += [subject("values", "values", "dtype") for _ in range(5)]
    chosen = choose_all({"values": GROUPS, "dropout": GROUPS}, subjects)
    assert [chosen[check].is_last for check in ("values", "dropout")] == [False, True]
    assert "dtype" in {use.oracle for use in chosen["dropout"].asks}


def test_a_check_that_fails_nobody_whom_others_pass_is_left_to_the_grading():
    subjects = [subject("values other", "values") for _ in range(5)]
    groups = {"values": GROUPS, "other": {aspect: [] for aspect in GROUPS}}
    assert choose_all(groups, subjects)["other"].asks == ()


def test_what_dropout_leaves_is_asked_last_at_most():
    """Once, a check that asked this first, and nothing else, passed who drops the answer in place
    of the weights.
    """
    groups = {**dict.fromkeys(GROUPS, ()), "struck": [(0,)], "dropped": [(0, 1)]}
    subjects = [subject("drops", "struck") for _ in range(9)] + [
        subject("drops", ("dropped", (0, 1)))
    ]
    chosen = choose_all({"drops": groups}, subjects)["drops"]
    assert chosen.is_last
    assert {use.oracle for use in chosen.asks} == {"struck", "dropped"}


def test_a_check_that_sees_little_but_what_others_see_is_asked_last():
    """Once, it was right about so many whose values are wrong that a dropout that was left out,
    alone, went unseen.
    """
    of_values = {**dict.fromkeys(GROUPS, ()), "values": [(0,)], "finite": [(0,)]}
    subjects = [subject("values drops", "values", "finite") for _ in range(40)] + [
        subject("drops", "struck") for _ in range(2)
    ]
    groups = {"values": of_values, "drops": {**of_values, "struck": [(0,)]}}
    chosen = choose_all(groups, subjects)
    assert [chosen[check].is_last for check in ("values", "drops")] == [False, True]
    assert "struck" in {use.oracle for use in chosen["drops"].asks}


def test_an_aspect_means_the_misconception_of_all_who_break_it():
    mutation, dtype = ("mutated", (0,)), ("dtype", (1,))
    subjects = [
        subject("check", mutation, dtype, id_="a"),
        subject("check", mutation, id_="a"),
        subject("check", dtype, id_="b"),
    ]
    uses = uses_of("check", {"check": GROUPS}, *subjects)
    assert [uses[oracle].means for oracle in ("mutated", "dtype")] == ["a", ""]
    uses = uses_of("check", {"check": GROUPS}, subject("check", "kind", id_="interface"))
    assert uses["kind"].means == "interface"


def test_of_a_difference_that_belongs_to_no_check_its_kind_is_asked():
    groups = groups_within(groups_of((0, 1, 2), (*EXPECTED, (torch.tensor(1.0),))), (0, 1))
    assert (groups["kind"], groups["shape"]) == ([(0,), (1,), (2,)], [(0,), (1,)])
    subjects = [mutant(True, ("kind", (2,))), mutant(True, ("difference", (0, 1, 2)))]
    assert uses_of("check", {"check": groups}, *subjects)["kind"].calls == ((0,), (1,), (2,))


def test_more_is_asked_of_a_mutant_that_nothing_sees():
    subjects = [subject("check", "shape") for _ in range(20)] + [
        subject("check", "values") for _ in range(2)
    ]
    groups = {"check": GROUPS, "other": GROUPS}
    elsewhere, alone = subject("other", "values", ("dtype", (1,))), subject("", "values")
    assert uses_of("check", groups, *subjects, elsewhere)["values"].calls == ((0,),)
    assert "values" not in uses_of("check", groups, *subjects, alone)


X, KEEP, W = torch.arange(6.0).view(2, 3), torch.tensor([True, False]), {"W.weight": torch.eye(3)}
EDITED = X + torch.tensor([0.0, 0.0, 1.0])
ONE = Call(Build("Layer", (3, 3), state=W), (X, KEEP, None))


EYE = {"W.weight": torch.eye(3)}


@cases(
    "arguments, weights, is_edit",
    {
        "an edit": ((EDITED, KEEP, None), EYE, True),
        "another tensor altogether": ((X + 1, KEEP, None), W, False),
        "two arguments": ((EDITED, ~KEEP, None), W, False),
        "the same call": ((X, KEEP, None), W, False),
        "a mask more": ((EDITED, KEEP, KEEP), W, False),
        "another shape": ((EDITED[:1], KEEP, None), W, False),
        "other weights": ((EDITED, KEEP, None), {"W.weight": 2 * torch.eye(3)}, False),
        "without numbers": ((EDITED.to("meta"), KEEP, None), W, False),
    },
)
def test_an_edit_of_one_argument(arguments, weights, is_edit):
    assert is_an_edit(ONE, Call(Build("Layer", (3, 3), state=weights), arguments)) is is_edit
    assert not is_an_edit(ONE, Call("f", arguments))
