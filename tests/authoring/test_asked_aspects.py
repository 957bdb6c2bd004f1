"""A visible check asks what gives the hidden check's verdict."""

import pytest
import torch

from manyheads.authoring.asked_aspects import OF_EVERY_CHECK, Groups, Subject, choose, choose_all, groups_of, within
from manyheads.diagnosis.aspects import Aspect

CALLS = (0, 1)
EXPECTED = (torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 3.0]]))
GROUPS: Groups = groups_of(CALLS, EXPECTED)


def right(*broken: tuple[Aspect, tuple[int, ...]]) -> Subject:
    return Subject(frozenset(), True, frozenset(broken))


def mutant(fails: bool, *broken: tuple[Aspect, tuple[int, ...]]) -> Subject:
    return Subject(frozenset({"check"} if fails else ()), False, frozenset(broken))


def chosen(*subjects: Subject) -> dict[str, tuple[tuple[int, ...], ...]]:
    """The aspects that are asked, with their calls, but for those of every check."""
    asks = {ask.aspect: ask.calls for ask in choose("check", GROUPS, subjects)}
    return {aspect: calls for aspect, calls in asks.items() if aspect not in OF_EVERY_CHECK}


def test_calls_are_held_together_where_the_reference_relates_their_answers() -> None:
    assert GROUPS["stays"] == [(0, 1)]
    assert groups_of((0, 1), (EXPECTED[0], EXPECTED[1] + 9))["stays"] == []
    assert GROUPS["values"] == [(0,), (1,)]


def test_an_edit_that_moves_everything_is_held_against_what_does_not_move() -> None:
    everywhere = groups_of((0, 1), (EXPECTED[0], EXPECTED[1] + 9), edits={(0, 1)})
    assert (everywhere["moves"], everywhere["stays"]) == ([(0, 1)], [])


def test_an_aspect_is_asked_where_more_verdicts_become_right_than_wrong() -> None:
    seen = [mutant(True, ("shape", (0,)), ("values", (0,))) for _ in range(5)]
    wrongly = mutant(False, ("values", (0,)))
    fails = mutant(True, ("values", (0,)))
    assert "values" in chosen(*seen, fails, fails, wrongly)
    assert "values" not in chosen(*seen, fails, wrongly)


def test_it_asks_what_fails_the_mutants_that_the_hidden_check_fails() -> None:
    assert chosen(mutant(True, ("values", (0,))), mutant(False, ("dtype", (0,)))) == {"values": ((0,), (1,))}


def test_it_asks_nothing_twice() -> None:
    assert chosen(mutant(True, ("shape", (0,)), ("values", (0,)))) == {"shape": ((0,), (1,))}


def test_a_call_on_which_a_right_attempt_differs_is_not_asked() -> None:
    asks = chosen(right(("values", (0,))), mutant(True, ("values", (0,)), ("values", (1,))))
    assert asks == {"values": ((1,),)}


def test_an_aspect_that_mutants_lack_which_pass_the_hidden_check_is_not_asked() -> None:
    passes = [mutant(False, ("values", (0,)), ("values", (1,))) for _ in range(3)]
    fails = mutant(True, ("values", (0,)), ("values", (1,)), ("stays", (0, 1)))
    assert chosen(*passes, fails) == {"stays": ((0, 1),)}


@pytest.mark.parametrize(("missed", "asked"), [(1, True), (2, False)], ids=["one in ten", "two in ten"])
def test_a_check_whose_verdict_recordings_cannot_give_is_left_to_the_grading(missed: int, asked: bool) -> None:
    subjects = [mutant(True, *[("values", (0,))] * (i >= missed)) for i in range(10)]
    assert bool(choose("check", GROUPS, subjects)) is asked


def test_where_no_mutant_says_what_a_check_asks_it_asks_for_the_recorded_values() -> None:
    asks = chosen(right(("values", (1,))), mutant(False))
    assert asks == {"values": ((0,),)}


def test_every_check_asks_for_answers_but_where_who_gives_none_passes_the_hidden_one() -> None:
    passes = mutant(False, ("answered", (1,)))
    asks = {ask.aspect: ask.calls for ask in choose("check", GROUPS, [mutant(True, ("values", (0,))), passes])}
    assert asks["answered"] == ((0,),)
    assert asks["kind"] == ((0,), (1,))


def test_a_check_that_misses_what_others_see_is_asked_last() -> None:
    """Where values are wrong, recordings do not tell what else a check of dropout fails for."""

    def subject(fails: str, *broken: Aspect) -> Subject:
        return Subject(frozenset(fails.split()), False, frozenset((aspect, (0,)) for aspect in broken))

    wrong_values = [subject("values dropout", "values") for _ in range(5)]
    undropped, passes = subject("dropout", "dtype"), [subject("values", "values", "dtype") for _ in range(5)]
    chosen = choose_all({"values": GROUPS, "dropout": GROUPS}, [*wrong_values, undropped, *passes])
    assert not chosen["values"].is_last
    assert chosen["dropout"].is_last
    assert "dtype" in {ask.aspect for ask in chosen["dropout"].asks}


def test_a_check_that_fails_nobody_whom_others_pass_is_left_to_the_grading() -> None:
    subjects = [Subject(frozenset({"values", "other"}), False, frozenset({("values", (0,))})) for _ in range(5)]
    groups = {"values": GROUPS, "other": {aspect: [] for aspect in GROUPS}}
    assert choose_all(groups, subjects)["other"].asks == ()


def test_what_dropout_leaves_is_asked_last_at_most() -> None:
    """Once, a check that asked this first, and nothing else, passed who drops the answer in place of the weights."""
    groups: Groups = {**dict.fromkeys(GROUPS, ()), "struck": [(0,)], "dropped": [(0, 1)]}
    struck = [Subject(frozenset({"drops"}), False, frozenset({("struck", (0,))})) for _ in range(9)]
    elsewhere = Subject(frozenset({"drops"}), False, frozenset({("dropped", (0, 1))}))
    chosen = choose_all({"drops": groups}, [*struck, elsewhere])["drops"]
    assert chosen.is_last
    assert {ask.aspect for ask in chosen.asks} == {"struck", "dropped"}


def test_a_check_that_sees_little_but_what_others_see_is_asked_last() -> None:
    """Once, it was right about so many whose values are wrong that a dropout that was left out, alone, went unseen."""

    def subject(fails: str, *broken: tuple[Aspect, tuple[int, ...]]) -> Subject:
        return Subject(frozenset(fails.split()), False, frozenset(broken))

    groups: Groups = {**dict.fromkeys(GROUPS, ()), "values": [(0,)], "finite": [(0,)], "struck": [(0,)]}
    of_values: Groups = {**groups, "struck": ()}
    wrong = [subject("values drops", ("values", (0,)), ("finite", (0,))) for _ in range(40)]
    undropped = [subject("drops", ("struck", (0,))) for _ in range(2)]
    chosen = choose_all({"values": of_values, "drops": groups}, [*wrong, *undropped])
    assert not chosen["values"].is_last
    assert chosen["drops"].is_last
    assert "struck" in {ask.aspect for ask in chosen["drops"].asks}


def test_an_aspect_means_the_misconception_of_all_who_break_it() -> None:
    def failing(id_: str, *broken: tuple[Aspect, tuple[int, ...]]) -> Subject:
        return Subject(frozenset({"check"}), False, frozenset(broken), id_)

    one: tuple[Aspect, tuple[int, ...]] = ("mutated", (0,))
    two: tuple[Aspect, tuple[int, ...]] = ("dtype", (1,))
    subjects = [failing("a", one, two), failing("a", one), failing("b", two)]
    means = {ask.aspect: ask.means for ask in choose_all({"check": GROUPS}, subjects)["check"].asks}
    assert (means["mutated"], means["dtype"], means.get("values", "")) == ("a", "", "")


def test_of_a_difference_that_belongs_to_no_check_its_kind_is_asked() -> None:
    expected = (torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 3.0]]), torch.tensor(1.0))
    groups = within(groups_of((0, 1, 2), expected), (0, 1))
    assert (groups["kind"], groups["shape"]) == ([(0,), (1,), (2,)], [(0,), (1,)])
    asks = choose_all({"check": groups}, [mutant(True, ("kind", (2,))), mutant(True, ("difference", (0, 1, 2)))])
    assert {ask.aspect: ask.calls for ask in asks["check"].asks}["kind"] == ((0,), (1,), (2,))


def test_what_a_kind_means_is_told() -> None:
    returns_another = Subject(frozenset({"check"}), False, frozenset({("kind", (0,))}), "interface")
    (kind,) = (ask for ask in choose_all({"check": GROUPS}, [returns_another])["check"].asks if ask.aspect == "kind")
    assert kind.means == "interface"


def test_more_is_asked_of_a_mutant_that_nothing_sees() -> None:
    def subject(fails: str, *broken: tuple[Aspect, tuple[int, ...]]) -> Subject:
        return Subject(frozenset(fails.split()), False, frozenset(broken))

    seen = [subject("check", ("shape", (0,))) for _ in range(20)]
    unseen = [subject("check", ("values", (0,))) for _ in range(2)]
    elsewhere = subject("other", ("values", (0,)), ("dtype", (1,)))
    groups = {"check": GROUPS, "other": GROUPS}
    more = choose_all(groups, [*seen, *unseen, elsewhere])["check"].asks
    assert [ask.calls for ask in more if ask.aspect == "values"] == [((0,),)]
    alone = subject("", ("values", (0,)))
    assert "values" not in {ask.aspect for ask in choose_all(groups, [*seen, *unseen, alone])["check"].asks}
