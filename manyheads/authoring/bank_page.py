"""Make docs/misconceptions.md: the bank as a page for instructors. The same bank gives the same bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..course import Course, CourseError, Exercise
from ..diagnosis.bank import Bank, MisconceptionText, load_bank
from ..diagnosis.kill_matrix import KillMatrix, read_kill_matrix
from ..judge.catalogue import Catalogue
from ..report.words import points

NAME = "docs/misconceptions.md"
SHOWN = 4  # how many checks are listed for a misconception
INTRODUCTION = """\
# The bank of misconceptions

For instructors: this page is in no class repository. `course release` makes it from the bank, and `course verify` says when it
is out of date, so change nothing here. The words are in `grader/texts.yaml`, the mutants in the files
beside it; then `course release`.

Read a row so: a student with this misconception reads the sentence and the hint; so many *mutants* (runnable wrong attempts)
stand for it; and these checks fail them, those that fail most first. A number in brackets says how many of them, where it is not
all. Behind each id: what it changes, the other two hints, and where else it can occur.
"""
NOT_OF_A_MUTANT = "No mutant stands for it: a check, an exception or the file itself proves it."


def page_path(course: Course) -> Path:
    """Return the path of the page."""
    return course.root / NAME


def is_current(course: Course, catalogue: Catalogue) -> bool:
    """Return whether the page is what the current bank yields."""
    try:
        return page_path(course).read_text(encoding="utf-8") == bank_page(course, catalogue)
    except (OSError, CourseError):
        return False


def bank_page(course: Course, catalogue: Catalogue) -> str:
    """Return the text of the page. Raises CourseError if the current bank has no kill matrix."""
    every = list(course.exercises)
    banks = {exercise.id: load_bank(exercise) for exercise in every}
    sections = [_exercise(catalogue, e, banks[e.id]) for e in every]
    return "\n".join([INTRODUCTION, _contents(banks), *sections, *_words(banks)])


def _contents(banks: dict[str, Bank]) -> str:
    rows = [
        (f"[{id_}](#{id_})", str(len({m.id for m in bank.mutants})), str(len(bank.mutants)))
        for id_, bank in banks.items()
    ]
    different = {mutant.id for bank in banks.values() for mutant in bank.mutants}
    rows.append(("together", f"{len(different)} different", str(sum(len(bank.mutants) for bank in banks.values()))))
    return _table(("exercise", "misconceptions", "mutants"), rows)


def _exercise(catalogue: Catalogue, exercise: Exercise, bank: Bank) -> str:
    matrix = read_kill_matrix(exercise)
    if matrix is None:
        raise CourseError(f"which checks catch the mutants of {exercise.id} is not recorded. Next: course release")
    rows = [_row(bank, matrix, id_) for id_ in dict.fromkeys(m.id for m in bank.mutants)]
    failed = [matrix.of(place) for place in range(len(matrix.mutants))]
    checks = [
        (f"`{check.id}`", _cell(check.title), points(check.points), str(sum(check.id in each for each in failed)))
        for check in catalogue.checks(exercise)
    ]
    parts = [
        f"## {exercise.id}\n",
        _table(("id", "what the student reads, and the hint", "mutants", "caught by"), rows),
        _table(("check", "what the student reads", "points", "mutants caught"), checks),
    ]
    return "\n".join(parts)


def _row(bank: Bank, matrix: KillMatrix, id_: str) -> tuple[str, ...]:
    places = [place for place, mutant in enumerate(bank.mutants) if mutant.id == id_]
    text = _text(bank, id_)
    failed = Counter(check for place in places for check in matrix.of(place))
    return (
        f"[`{id_}`](#{id_})",
        f"{_cell(text.title)} *{_cell(text.hints[0])}*",
        str(len(places)),
        _checks(failed, len(places)),
    )


def _checks(failed: Counter[str], mutants: int) -> str:
    named = [f"`{check}`" + ("" if count == mutants else f" ({count})") for check, count in failed.most_common(SHOWN)]
    more = len(failed) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def _words(banks: dict[str, Bank]) -> Iterator[str]:
    """Yield every misconception once: its texts, and the exercises where it has other texts."""
    yield "## What each one changes\n"
    listed = {id_: None for bank in banks.values() for id_ in (*bank.texts, *(m.id for m in bank.mutants))}
    for id_ in listed:
        groups: dict[MisconceptionText, list[str]] = {}
        homes = [e for e, bank in banks.items() if any(m.id == id_ for m in bank.mutants)]
        for exercise in homes or banks:
            groups.setdefault(_text(banks[exercise], id_), []).append(exercise)
        yield f"### {id_}\n"
        if not homes:
            yield f"{NOT_OF_A_MUTANT}\n"
        for text, exercises in groups.items():
            yield _entry(text, exercises if homes else [])


def _entry(text: MisconceptionText, exercises: Sequence[str]) -> str:
    links = ", ".join(f"[{id_}](#{id_})" for id_ in exercises)
    where = f" ({links})" if links else ""
    hints = "\n".join(f"{number}. {_cell(hint)}" for number, hint in enumerate(text.hints, 1))
    return f"**{_cell(text.title)}**{where} {_cell(text.explanation)}\n\n{hints}\n"


def _text(bank: Bank, id_: str) -> MisconceptionText:
    """Return the texts of a misconception; if it has none yet, its id is the title."""
    return bank.texts.get(id_) or MisconceptionText(id_.replace("_", " "), "", ("", "", ""))


def _cell(text: str) -> str:
    """Escape a text for Markdown, as one line that may stand in a table."""
    for sign in "\\`*_[]<>|":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
