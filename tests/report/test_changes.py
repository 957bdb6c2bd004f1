"""What changed between two runs."""

from __future__ import annotations

from io import StringIO

from rich.console import Console, RenderableType

from manyheads.report.changes import by_check, changes, compare, summary
from manyheads.result import CheckResult, Diagnosed, ExerciseResult, Outcome, Result


def check(id_: str, score: float = 0, of: float = 2, outcome: Outcome = "failed", evidence: str = "") -> CheckResult:
    ended = "passed" if score == of else outcome
    return CheckResult(id=id_, title=f"does {id_}", outcome=ended, score=score, max_score=of, evidence=evidence)


def exercise(*checks: CheckResult, id_: str = "dance", named: tuple[str, ...] = ()) -> ExerciseResult:
    found = tuple(Diagnosed(id=name, title=name, hint="") for name in named)
    return ExerciseResult(id=id_, score=sum(c.score for c in checks), max_score=sum(c.max_score for c in checks),
                          checks=checks, diagnosis=found)  # fmt: skip


def graded(student: str, *exercises: ExerciseResult, **changed: object) -> Result:
    score, most = sum(e.score for e in exercises), sum(e.max_score for e in exercises)
    whole = {"student": student, "assignment": "heads", "score": score, "max_score": most, "device": "cpu", "seed": 0,
             "isolation": "namespaces", "versions": {"torch": "2.6"}, "exercises": exercises}  # fmt: skip
    return Result.model_validate(whole | changed)


RIGHT = exercise(check("split", 2), check("merge", 2))
WRONG = exercise(check("split"), check("merge", 2), named=("wrong_view",))


def text(rendered: RenderableType) -> list[str]:
    console = Console(file=StringIO(), width=100, highlight=False)
    console.print(rendered)
    written = console.file.getvalue()  # type: ignore[attr-defined]
    return [" ".join(line.split()) for line in written.splitlines() if line.strip()]


def test_two_runs_with_the_same_verdicts_are_the_same_whatever_was_drawn() -> None:
    old = graded("ada", exercise(check("split", evidence="1 of 4 values differ"), named=("wrong_view",)))
    new = graded("ada", exercise(check("split", evidence="2 of 9 values differ"), named=("wrong_view",)))
    found = compare([old], [new])
    assert (found.same, found.changed, found.drops) == (1, (), False)
    assert text(changes(found)) == []
    assert text(summary(found)) == ["Submissions: 1 the same"]


def test_a_gain_is_shown_with_its_checks_and_its_diagnosis() -> None:
    found = compare([graded("ada", WRONG)], [graded("ada", RIGHT)])
    assert text(changes(found)) == [
        "heads",
        "↑ ada: 2 → 4 / 4",
        "dance: wrong_view → none",
        "dance does split 0 → 2 / 2",
    ]
    assert text(summary(found)) == [
        "heads: checks, by students who gained or lost",
        "dance does split 1 up",
        "Submissions: 1 up",
    ]
    assert not found.drops


def test_a_loss_is_a_drop() -> None:
    found = compare([graded("ada", RIGHT)], [graded("ada", WRONG)])
    assert text(changes(found))[1] == "↓ ada: 4 → 2 / 4"
    assert text(summary(found))[-1] == "Submissions: 1 down"
    assert found.drops


def test_a_loss_that_a_gain_outweighs_is_still_a_drop() -> None:
    old = graded("ada", exercise(check("split", 1, of=1), check("merge", 0)))
    new = graded("ada", exercise(check("split", 0, of=1), check("merge", 2)))
    found = compare([old], [new])
    assert text(changes(found))[1] == "↑ ada: 1 → 2 / 3"
    assert found.drops


def test_another_diagnosis_or_another_end_for_as_many_points_is_no_drop() -> None:
    old = [graded("ada", exercise(check("split"), named=("scale_missing",))), graded("ben", exercise(check("split")))]
    new = [graded("ada", exercise(check("split"), named=("wrong_view", "scale_missing"))),
           graded("ben", exercise(check("split", outcome="timeout")))]  # fmt: skip
    found = compare(old, new)
    assert text(changes(found)) == [
        "heads",
        "= ada: 0 → 0 / 2",
        "dance: scale_missing → wrong_view, scale_missing",
        "= ben: 0 → 0 / 2",
        "dance does split 0 → 0 / 2 failed → ran out of time",
    ]
    assert text(summary(found)) == ["Submissions: 2 with other checks or diagnoses for as many points"]
    assert not found.drops


def test_who_is_new_is_no_drop_and_who_is_gone_is() -> None:
    ada, ben = graded("ada", RIGHT), graded("ben", WRONG)
    added, gone = compare([ada], [ada, ben]), compare([ada, ben], [ada])
    assert text(changes(added)) == ["heads", "+ ben is new, 2 / 4"]
    assert text(changes(gone)) == ["heads", "- ben is gone, was 2 / 4"]
    assert (added.drops, gone.drops) == (False, True)


def test_a_student_has_each_assignment_by_itself() -> None:
    heads, tails = graded("ada", WRONG), graded("ada", RIGHT, assignment="tails")
    found = compare([heads, tails], [graded("ada", RIGHT), tails])
    assert (found.same, [change.new.assignment for change in found.changed]) == (1, ["heads"])


def test_checks_that_came_went_or_weigh_otherwise_are_named() -> None:
    old = graded("ada", exercise(check("split", 2), check("lost", 2)), exercise(check("x", 2), id_="left"))
    new = graded("ada", exercise(check("split", 3, of=3), check("found", 0)))
    found = compare([old], [new])
    assert text(changes(found))[2:] == [
        "dance does split 2 / 2 → 3 / 3",
        "dance does lost 2 / 2 → none no such check now",
        "dance does found none → 0 / 2 no such check before",
        "left does x 2 / 2 → none no such check now",
    ]
    assert found.drops


def test_a_check_that_weighs_otherwise_is_a_change_even_where_it_earns_nothing() -> None:
    found = compare([graded("ada", exercise(check("split", of=2)))], [graded("ada", exercise(check("split", of=3)))])
    assert text(changes(found)) == ["heads", "= ada: 0 → 0 / 3", "dance does split 0 / 2 → 0 / 3"]
    assert not found.drops


def test_checks_stand_in_the_order_of_what_was_lost_and_then_of_what_was_gained() -> None:
    both = exercise(check("gained"), check("lost", 2), check("mixed", 2))
    old = [graded(name, both) for name in "ab"] + [graded("c", exercise(check("mixed")))]
    new = [
        graded("a", exercise(check("gained", 2), check("lost"), check("mixed"))),
        graded("b", exercise(check("gained", 2), check("lost", 2), check("mixed", 2))),
        graded("c", exercise(check("mixed", 2))),
    ]
    assert by_check(compare(old, new).changed) == [
        ("dance", "does mixed", 1, 1),
        ("dance", "does lost", 0, 1),
        ("dance", "does gained", 2, 0),
    ]


def test_how_the_runs_were_graded_is_said_where_it_differs() -> None:
    old = [graded("ada", RIGHT), graded("ben", RIGHT)]
    new = [
        graded("ada", RIGHT, seed=7, versions={"torch": "2.13", "numpy": "2"}),
        graded("ben", RIGHT, isolation="process"),
    ]
    assert text(summary(compare(old, new))) == [
        "Graded otherwise: isolation namespaces → namespaces, process",
        "Graded otherwise: seed 0 → 0, 7",
        "Graded otherwise: torch 2.6 → 2.13, 2.6",
        "Graded otherwise: numpy none → 2",
        "Submissions: 2 the same",
    ]


def test_what_looks_like_markup_is_shown_as_it_is() -> None:
    name = "[red]x[/red] [/]"
    wrong = exercise(CheckResult(id="x", title=name, outcome="failed", score=0, max_score=2), id_=name, named=(name,))
    right = exercise(CheckResult(id="x", title=name, outcome="passed", score=2, max_score=2), id_=name)
    found = compare([graded(name, wrong), graded(name + "2", wrong)], [graded(name, right)])
    assert sum(line.count(name) for line in text(changes(found))) == 6
    assert sum(line.count(name) for line in text(summary(found))) == 2
