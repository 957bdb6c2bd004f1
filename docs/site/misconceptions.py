"""Make the pages of the bank: one that leads to the others, and one for each exercise. The same
bank gives the same pages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress

from manyheads.course import Course, CourseError, Exercise
from manyheads.diagnosis.bank import Bank, MisconceptionText, load_bank
from manyheads.diagnosis.recording_file import current
from manyheads.judge.run_hidden_checks import Catalogue
from manyheads.report.report_content import points

SHOWN = 4  # how many checks are listed for a misconception
INTRODUCTION = """\
# The bank of misconceptions

For instructors: this page is in no class repository. It is made from the bank. The words are in \
`grader/texts.yaml`, the mutants
in the files beside it.

Read a row of an exercise's page so: a student with this misconception reads the sentence and the \
hint; so many *mutants* (runnable
wrong attempts) stand for it; and these checks fail them, those that fail most first. A number in \
brackets says how many of them, where
it is not all. Behind each id: what it changes, the other two hints, and where else it can occur.
"""
JUMPS = (
    "[The bank](misconceptions.md) · [its checks](#its-checks) · [what each one "
    "changes](#what-each-one-changes)"
)
Banks = Mapping[str, Bank]


def misconception_pages(course: Course) -> dict[str, str]:
    """Return the pages, by name.

    Raises CourseError if the fault dictionary of an exercise is stale.
    """
    catalogue = Catalogue(course)
    banks = {exercise.id: load_bank(exercise) for exercise in course.exercises}
    pages = {
        _page(exercise.id): _of_exercise(catalogue, exercise, banks)
        for exercise in course.exercises
    }
    return pages | {"misconceptions": _first_page(banks)}


def _first_page(banks: Banks) -> str:
    homes = {
        id_: _homes(id_, banks) for bank in banks.values() for id_ in (*bank.texts, *_ids(bank))
    }
    counts = [
        (f"[{name}]({_page(name)}.md)", str(len(_ids(bank))), str(len(bank.mutants)))
        for name, bank in banks.items()
    ]
    mutants = str(sum(len(bank.mutants) for bank in banks.values()))
    counts.append(("together", f"{sum(map(bool, homes.values()))} different", mutants))
    rows = [(f"`{id_}`", _links(homes[id_], id_)) for id_ in sorted(homes) if homes[id_]]
    anywhere = list[str]()
    for id_, exercises in homes.items():
        if exercises:
            continue
        for text in dict.fromkeys(_text(bank, id_) for bank in banks.values()):
            anywhere.append(
                f"### {id_}\n\nNo mutant stands for it: a check, an exception or the file itself "
                f"proves it.\n\n{_words(text)}"
            )
    return "\n".join(
        [
            INTRODUCTION,
            _table(("exercise", "misconceptions", "mutants"), counts),
            "## By id\n",
            _table(("id", "what it changes, in"), rows),
            "## In any exercise\n",
            *anywhere,
            "```{toctree}\n:hidden:\n",
            *map(_page, banks),
            "```\n",
        ]
    )


def _of_exercise(catalogue: Catalogue, exercise: Exercise, banks: Banks) -> str:
    recording, bank = current(exercise), banks[exercise.id]
    if recording is None:
        raise CourseError(
            f"which checks catch the mutants of {exercise.id} is not recorded. Next: course release"
        )
    failed = [[*compress(recording.hidden, map(int, row))] for row in recording.kills]
    rows, changes = [], []
    for id_ in _ids(bank):
        text = _text(bank, id_)
        indices = [index for index, mutant in enumerate(bank.mutants) if mutant.id == id_]
        failures = Counter(check for index in indices for check in failed[index])
        caught = _checks(failures, len(indices))
        rows.append(
            (
                f"[`{id_}`](#{id_})",
                f"{_cell(text.title)} *{_cell(text.hints[0])}*",
                str(len(indices)),
                caught,
            )
        )
        alike = [
            home
            for home in _homes(id_, banks)
            if home != exercise.id and _text(banks[home], id_) == text
        ]
        changes.append(f"### {id_}\n\n{_words(text, _links(alike, id_))}")
    catches = Counter(check for failed_checks in failed for check in failed_checks)
    checks = [
        (f"`{check.id}`", _cell(check.title), points(check.points), str(catches[check.id]))
        for check in catalogue.checks(exercise)
    ]
    return "\n".join(
        [
            f"# {exercise.id}\n\n{JUMPS}\n",
            _table(("id", "what the student reads, and the hint", "mutants", "caught by"), rows),
            "## Its checks\n",
            _table(("check", "what the student reads", "points", "mutants caught"), checks),
            "## What each one changes\n",
            *changes,
        ]
    )


def _ids(bank: Bank) -> list[str]:
    return list(dict.fromkeys(mutant.id for mutant in bank.mutants))


def _homes(id_: str, banks: Banks) -> list[str]:
    return [exercise for exercise, bank in banks.items() if _has_mutant(bank, id_)]


def _has_mutant(bank: Bank, id_: str) -> bool:
    return any(mutant.id == id_ for mutant in bank.mutants)


def _page(exercise: str) -> str:
    return f"misconceptions-{exercise}"


def _link(exercise: str, id_: str) -> str:
    return f"[{exercise}]({_page(exercise)}.md#{id_})"


def _links(exercises: Iterable[str], id_: str) -> str:
    return ", ".join(_link(exercise, id_) for exercise in exercises)


def _checks(failed: Counter[str], mutants: int) -> str:
    shown = [
        f"`{check}`" + ("" if count == mutants else f" ({count})")
        for check, count in failed.most_common(SHOWN)
    ]
    remaining = len(failed) - len(shown)
    return ", ".join(shown) + (f" and {remaining} more" if remaining else "")


def _words(text: MisconceptionText, alike: str = "") -> str:
    """Return the texts of a misconception, with links to exercises with the same texts."""
    hints = "\n".join(f"{number}. {_cell(hint)}" for number, hint in enumerate(text.hints, 1))
    note = f" (also in {alike})" if alike else ""
    return f"**{_cell(text.title)}**{note} {_cell(text.explanation)}\n\n{hints}\n"


def _text(bank: Bank, id_: str) -> MisconceptionText:
    """Return the texts of a misconception; if it has none yet, its id is the title."""
    return bank.texts.get(id_) or MisconceptionText(
        title=id_.replace("_", " "), explanation="", hints=("", "", "")
    )


def _cell(text: str) -> str:
    """Escape a text for Markdown, as one line that may stand in a table."""
    for sign in "\\`*_[]<>|":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
