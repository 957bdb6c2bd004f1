"""Print sentences about a class: decisions, unknown times, absent students, ungraded exercises.

Long lists are cut, because a class may have hundreds of students.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..course.final_scores import UNKNOWN_TIME
from ..report.class_summary import ClassView, sentences
from ..report.report_content import score_words
from .options import Console

MOST_NAMED = 40  # the most names or messages of one list, to fit on one screen of a terminal
ON_THE_PAGE = "Next: course report, whose class page has them all"


def print_class_state(console: Console, view: ClassView, how: str) -> bool:
    """Print sentences about a class, and return whether everything is graded.

    The sentences are about decisions, unknown times, changes of points, absent students, and
    students missing from the roster. Then come the sentence `how` and the ungraded exercises.
    """
    decided = (
        (sentence, result.student)
        for result in view.results
        for sentence in sentences(result, view.labels)
    )
    print_labelled(console, "decided", _with_whose(decided), style="cyan")
    _print_untimed(console, view)
    _print_changed_points(console, view)
    _print_absent(console, view)
    _print_strangers(console, view)
    console.say(how)
    return print_not_graded(console, view)


def _print_untimed(console: Console, view: ClassView) -> None:
    untimed = list[str]()
    for result in view.results:
        if any(adjustment.words == UNKNOWN_TIME for adjustment in result.adjustments):
            untimed.append(result.student)
    if untimed:
        console.say(
            "When these were handed in is not known, and none of them counts as late: "
            f"{list_names(sorted(untimed))}. Next: a score in overrides.yaml for whoever was late; "
            "of downloads from Moodle or Canvas, course collect DOWNLOAD --times LIST",
            style="yellow",
        )


def _print_changed_points(console: Console, view: ClassView) -> None:
    for assignment_part in view.assignments:
        if not assignment_part.changed:
            continue
        changes = [
            f"{change.student} {score_words(change.before)} → {score_words(change.after)}"
            for change in assignment_part.changed
        ]
        console.say(
            f"{assignment_part.title}: points changed since the last run: {list_names(changes)}",
            style="cyan",
        )


def _print_absent(console: Console, view: ClassView) -> None:
    if absent := view.members.absent_students(view.by_student):
        names = [view.members.row_of(student).name or student for student in absent]
        console.say(
            f"Handed in nothing: {len(absent)} of {len(view.members.by_name)} on the roster: "
            f"{list_names(names)}"
        )


def _print_strangers(console: Console, view: ClassView) -> None:
    if strangers := view.members.strangers(view.by_student):
        console.say(
            f"Not on the roster, and in no mean: {list_names(strangers)}."
            " Next: complete the roster",
            style="yellow",
        )


def print_not_graded(console: Console, view: ClassView) -> bool:
    """Print the ungraded exercises of each student with the reason, and the next step.

    Return whether everything is graded.
    """
    ungraded = sorted(
        (pair for assignment_part in view.assignments for pair in assignment_part.not_graded),
        key=lambda pair: pair[0],
    )
    print_labelled(console, "not graded", _with_whose((why, student) for student, why in ungraded))
    next_step = "the same course grade again, which tries that alone"
    if any(
        exercise.not_readable and exercise.id in result.not_graded
        for result in view.results
        for exercise in result.exercises
    ):
        mend = (
            "put what cannot be read into the student's folder, opened, or decide in overrides.yaml"
        )
        next_step = f"{mend}; then the same course grade again"
    if ungraded:
        console.say(
            f"There are no points for that, and no total. Next: {next_step}", style="yellow"
        )
    return not ungraded


def print_labelled(
    console: Console,
    label: str,
    messages: Sequence[str],
    next_step: str = ON_THE_PAGE,
    style: str = "yellow",
    limit: int | None = MOST_NAMED,
) -> None:
    """Print messages with one label, at most `limit`, and the number of the remaining ones.

    Args:
        console: Prints the messages.
        label: The label of each message.
        messages: The messages.
        next_step: The advice that shows the remaining messages.
        style: The style of the messages.
        limit: The most messages, or None for all.
    """
    console.say(*(f"{label}: {message}" for message in messages[:limit]), style=style)
    if remaining := len(messages) - len(messages[:limit]):
        console.say(f"{label}: and {remaining} more. {next_step}", style=style)


def _with_whose(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return each sentence once, after the names of its students."""
    by_sentence: dict[str, list[str]] = {}
    for sentence, student in pairs:
        by_sentence.setdefault(sentence, []).append(student)
    return [f"{list_names(students)}: {sentence}" for sentence, students in by_sentence.items()]


def list_names(names: Sequence[str]) -> str:
    """Return the first MOST_NAMED names, joined by commas, and the number of the others."""
    suffix = f", and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + suffix
