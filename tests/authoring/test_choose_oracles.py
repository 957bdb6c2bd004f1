"""Internal: the mutants of a released course do not cover every reason to choose an oracle.

The oracles of a visible check are chosen so that it gives the hidden check's verdict. An oracle
compares a reply with the recorded one in one respect, such as shape or values.
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
UNRELATED_ANSWERS = (EXPECTED[0], (EXPECTED[1][0] + 9,))
GROUPS: Groups = groups_of(CALLS, EXPECTED)


FIRST_VALUES, SECOND_VALUES = ("values", (0,)), ("values", (1,))


def correct_program(*broken: tuple[Oracle, tuple[int, ...]]) -> LabelledProgram:
    """Return a right attempt that violates these oracles on these calls."""
    return LabelledProgram(frozenset(), frozenset(broken), is_right=True)


def program(
    fails: str, *broken: Oracle | tuple[Oracle, tuple[int, ...]], id_: str = ""
) -> LabelledProgram:
    """Return a mutant that fails these hidden checks and violates these oracles.

    Args:
        fails: The names of checks, separated by spaces.
        broken: Violated oracles with their calls; without calls, on the first one.
        id_: The misconception of the mutant.
    """
    differs = frozenset((oracle, (0,)) if isinstance(oracle, str) else oracle for oracle in broken)
    return LabelledProgram(frozenset(fails.split()), differs, id_)


def mutant(fails: bool, *broken: tuple[Oracle, tuple[int, ...]]) -> LabelledProgram:
    """Return a mutant that violates these oracles. fails: whether it fails the hidden check."""
    return program("check" if fails else "", *broken)


def uses_of(
    check: str, groups: dict[str, Groups], *programs: LabelledProgram
) -> dict[str, OracleUse]:
    """Return the oracles that a check uses, by name."""
    return {use.oracle: use for use in choose_all(groups, programs)[check].asks}


def chosen_oracles(*programs: LabelledProgram) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Return the chosen oracles with their calls, without those that every check uses."""
    uses = choose("check", GROUPS, programs)
    return {use.oracle: use.calls for use in uses if use.oracle not in OF_EVERY_CHECK}


def test_calls_are_grouped_if_the_reference_gives_related_answers():
    assert GROUPS["stays"] == [(0, 1)]
    assert groups_of((0, 1), UNRELATED_ANSWERS)["stays"] == []
    assert GROUPS["values"] == [(0,), (1,)]


def test_an_edit_that_changes_every_answer_is_used_by_moves_only():
    everywhere = groups_of((0, 1), UNRELATED_ANSWERS, edits={(0, 1)})
    assert (everywhere["moves"], everywhere["stays"]) == ([(0, 1)], [])


def test_an_oracle_is_used_if_it_corrects_more_verdicts_than_it_spoils():
    programs = [mutant(True, ("shape", (0,)), FIRST_VALUES) for _ in range(5)]
    programs += [mutant(False, FIRST_VALUES), mutant(True, FIRST_VALUES)]
    assert "values" not in chosen_oracles(*programs)
    assert "values" in chosen_oracles(*programs, mutant(True, FIRST_VALUES))


@cases(
    "programs, expected",
    {
        "an oracle that only mutants violate which fail the hidden check": (
            [mutant(True, FIRST_VALUES), mutant(False, ("dtype", (0,)))],
            {"values": ((0,), (1,))},
        ),
        "one of two oracles that detect the same mutants": (
            [mutant(True, ("shape", (0,)), FIRST_VALUES)],
            {"shape": ((0,), (1,))},
        ),
        "only calls on which right attempts agree": (
            [correct_program(FIRST_VALUES), mutant(True, FIRST_VALUES, SECOND_VALUES)],
            {"values": ((1,),)},
        ),
        "no oracle that passing mutants violate, and what an edit should move": (
            [
                *(mutant(False, FIRST_VALUES, SECOND_VALUES) for _ in range(3)),
                mutant(True, FIRST_VALUES, SECOND_VALUES, ("stays", (0, 1))),
            ],
            {"stays": ((0, 1),), "moves": ((0, 1),)},
        ),
        "not what an edit should move, if a mutant that passes lacks it": (
            [
                mutant(False, ("moves", (0, 1))),
                mutant(True, FIRST_VALUES, SECOND_VALUES, ("stays", (0, 1))),
                *(mutant(False, FIRST_VALUES, SECOND_VALUES) for _ in range(3)),
            ],
            {"stays": ((0, 1),)},
        ),
        "the recorded values, if no mutant fails the hidden check": (
            [correct_program(SECOND_VALUES), mutant(False)],
            {"values": ((0,),)},
        ),
    },
)
def test_these_oracles_are_chosen_for_these_programs(programs, expected):
    assert chosen_oracles(*programs) == expected


@cases("missed, expected", {"one in ten": (1, True), "two in ten": (2, False)})
def test_a_check_that_recordings_cannot_decide_is_left_to_grading(missed, expected):
    programs = [mutant(True, *[("values", (0,))] * (i >= missed)) for i in range(10)]
    assert bool(choose("check", GROUPS, programs)) is expected


def test_every_check_requires_answers_unless_the_hidden_check_passes_without():
    passes = mutant(False, ("answered", (1,)))
    uses = {
        use.oracle: use.calls
        for use in choose("check", GROUPS, [mutant(True, FIRST_VALUES), passes])
    }
    assert (uses["answered"], uses["kind"]) == (((0,),), ((0,), (1,)))


def test_a_check_that_misses_mistakes_of_other_checks_runs_last():
    """If values are wrong, recordings do not show why else a check of dropout fails."""
    programs = [program("values dropout", "values") for _ in range(5)] + [
        program("dropout", "dtype")
    ]
    programs += [program("values", "values", "dtype") for _ in range(5)]
    chosen = choose_all({"values": GROUPS, "dropout": GROUPS}, programs)
    assert [chosen[check].is_last for check in ("values", "dropout")] == [False, True]
    assert "dtype" in {use.oracle for use in chosen["dropout"].asks}


def test_a_check_that_finds_no_further_mutants_is_left_to_grading():
    programs = [program("values other", "values") for _ in range(5)]
    groups = {"values": GROUPS, "other": {aspect: [] for aspect in GROUPS}}
    assert choose_all(groups, programs)["other"].asks == ()


def test_a_check_of_dropout_runs_last():
    """Once such a check ran first and alone, and passed an attempt that drops elements of the
    output instead of the weights.
    """
    groups = {**dict.fromkeys(GROUPS, ()), "struck": [(0,)], "dropped": [(0, 1)]}
    programs = [program("drops", "struck") for _ in range(9)] + [
        program("drops", ("dropped", (0, 1)))
    ]
    chosen = choose_all({"drops": groups}, programs)["drops"]
    assert chosen.is_last
    assert {use.oracle for use in chosen.asks} == {"struck", "dropped"}


def test_a_check_with_few_mutants_of_its_own_runs_last():
    """Once such a check was correct for so many mutants with wrong values that missing dropout was
    not detected.
    """
    of_values = {**dict.fromkeys(GROUPS, ()), "values": [(0,)], "finite": [(0,)]}
    programs = [program("values drops", "values", "finite") for _ in range(40)] + [
        program("drops", "struck") for _ in range(2)
    ]
    groups = {"values": of_values, "drops": {**of_values, "struck": [(0,)]}}
    chosen = choose_all(groups, programs)
    assert [chosen[check].is_last for check in ("values", "drops")] == [False, True]
    assert "struck" in {use.oracle for use in chosen["drops"].asks}


def test_an_oracle_implies_the_misconception_that_all_its_violators_share():
    mutation, dtype = ("mutated", (0,)), ("dtype", (1,))
    programs = [
        program("check", mutation, dtype, id_="a"),
        program("check", mutation, id_="a"),
        program("check", dtype, id_="b"),
    ]
    uses = uses_of("check", {"check": GROUPS}, *programs)
    assert [uses[oracle].means for oracle in ("mutated", "dtype")] == ["a", ""]
    uses = uses_of("check", {"check": GROUPS}, program("check", "kind", id_="interface"))
    assert uses["kind"].means == "interface"


def test_for_calls_of_no_check_only_the_type_of_answer_is_compared():
    groups = groups_within(groups_of((0, 1, 2), (*EXPECTED, (torch.tensor(1.0),))), (0, 1))
    assert (groups["kind"], groups["shape"]) == ([(0,), (1,), (2,)], [(0,), (1,)])
    programs = [mutant(True, ("kind", (2,))), mutant(True, ("difference", (0, 1, 2)))]
    assert uses_of("check", {"check": groups}, *programs)["kind"].calls == ((0,), (1,), (2,))


def test_a_mutant_that_no_check_detects_changes_the_choice():
    programs = [program("check", "shape") for _ in range(20)] + [
        program("check", "values") for _ in range(2)
    ]
    groups = {"check": GROUPS, "other": GROUPS}
    elsewhere, alone = program("other", "values", ("dtype", (1,))), program("", "values")
    assert uses_of("check", groups, *programs, elsewhere)["values"].calls == ((0,),)
    assert "values" not in uses_of("check", groups, *programs, alone)


X, KEEP, W = torch.arange(6.0).view(2, 3), torch.tensor([True, False]), {"W.weight": torch.eye(3)}
EDITED = X + torch.tensor([0.0, 0.0, 1.0])
ORIGINAL_CALL = Call(Build("Layer", (3, 3), state=W), (X, KEEP, None))


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
def test_is_an_edit_requires_a_change_of_exactly_one_argument(arguments, weights, is_edit):
    assert (
        is_an_edit(ORIGINAL_CALL, Call(Build("Layer", (3, 3), state=weights), arguments)) is is_edit
    )
    assert not is_an_edit(ORIGINAL_CALL, Call("f", arguments))
