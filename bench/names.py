"""What grading and `course check` say of every mutant, of pairs, of whole attempts, of small edits,
and of unfinished files.

    python -m bench.names write FILE [--every N] [--only EXERCISE …]
    python -m bench.names compare OLD NEW
    python -m bench.names figures FILE

`write` judges each attempt in the box, from its text, on both sides: a line of JSON for each
attempt, in an order that is always the same. All of a course takes hours; `--every 20` takes about
a twentieth of the attempts of each kind. An attempt's label has a digest of its code and no number,
and digests decide which attempts `--every` takes. So two files have nearly the same attempts under
the same labels, whatever was added to the bank or renamed in it between them. `compare` counts the
names that were won, lost and reordered, and on how many attempts the two sides disagree.
`tests/golden/names.jsonl.gz` has every twelfth attempt, as both sides name it since there is one
diagnosis. `figures` prints how many attempts of each kind have the names that they should have: the
table of docs/diagnosis.md.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import hashlib
import itertools
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from manyheads.authoring.stub import stub_of
from manyheads.authoring.verify.faults import FaultBench
from manyheads.box.level import Box, Level, open_box
from manyheads.checks.edit import Edit, EditError
from manyheads.checks.transcript import target_of
from manyheads.course import Course, Exercise, load_course
from manyheads.diagnosis import Bank, Mutant, load_bank
from manyheads.diagnosis.recording_file import read
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.judge.judge_process import usable
from manyheads.lines.find_lines import Bounds
from manyheads.result import ExerciseResult
from manyheads.student.check_attempt import check_source
from manyheads.submission import AttemptSource

from .one_file import one_file

ROOT = Path(__file__).parents[1]
PAIRS, EDITS = 25, 30  # of each exercise
SECRET = b"golden names"
BY_COUNT = Bounds(seconds=60.0)  # by the count alone: a slow machine finds as much as a fast one
NO_LINES = Bounds(edits=0)
SIDES = ("graded", "home")


@dataclass(frozen=True)
class Attempt:
    """An attempt's text.

    label: what tells it from the others of its kind, whatever they are. due: the misconceptions
        that it has.
    has_lines: whether it is a person's text, whose line can be searched for.
    """

    kind: str
    label: str
    text: str
    due: tuple[str, ...] = ()
    has_lines: bool = False


def attempts(course: Course, box: Box, exercise: Exercise, every: int) -> Iterator[Attempt]:
    """Yield one of n attempts of each kind of an exercise, those with the lowest digests, and each
    of them unfinished.
    """
    for _, of_kind in itertools.groupby(
        _whole(course, box, exercise), key=lambda attempt: attempt.kind
    ):
        by_digest = sorted(of_kind, key=lambda attempt: digest(attempt.label))
        for attempt in by_digest[: math.ceil(len(by_digest) / every)]:
            yield attempt
            yield from unfinished(exercise, attempt)


def _whole(course: Course, box: Box, exercise: Exercise) -> Iterator[Attempt]:
    bank = load_bank(exercise)
    # of two ids with the same code the first
    by_code = {code_of(mutant): mutant for mutant in reversed(bank.mutants)}
    for code, mutant in reversed(by_code.items()):
        yield Attempt("mutant", code, text_of(exercise, mutant), (mutant.id,))
    for first, second in pairs_of(bank):
        text = text_of_pair(exercise, bank, first, second)
        if text is not None:
            yield Attempt(
                "pair", f"{code_of(first)} and {code_of(second)}", text, (first.id, second.id)
            )
    for kind, paths in (("right", exercise.right_attempts()), ("wrong", exercise.wrong_attempts())):
        for path in paths:
            yield Attempt(kind, path.stem, path.read_text("utf-8"), has_lines=True)
    faults = FaultBench(course, box, exercise).faults()
    for fault in itertools.islice(faults, EDITS):
        yield Attempt(
            "edit", f"{fault.attempt} {fault.edit.described}", fault.edit.after, has_lines=True
        )


def digest(*parts: object) -> str:
    """Return eight hexadecimal digits that tell these parts from others."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]


def code_of(mutant: Mutant) -> str:
    """Return a digest of how a mutant differs from the reference, which its place in the bank and
    its id do not change.
    """
    return digest(sorted(map(repr, mutant.faults.items())))


def pairs_of(bank: Bank) -> Sequence[tuple[Mutant, Mutant]]:
    """Return pairs of mutants with two ids and no fault in common: those whose codes give the
    lowest digests.
    """
    pairs = [
        (first, second)
        for first, second in itertools.combinations(bank.mutants, 2)
        if first.id != second.id
        and not first.faults.keys() & second.faults.keys()
        and bool(first.source) == bool(second.source)
    ]
    codes = {id(mutant): code_of(mutant) for mutant in bank.mutants}
    pairs.sort(key=lambda pair: digest(*(codes[id(mutant)] for mutant in pair)))
    return pairs[:PAIRS]


def text_of(exercise: Exercise, mutant: Mutant) -> str:
    """Return a mutant's text: the edited reference, or the bank with a call of its `make`."""
    return mutant.source or _made(exercise, mutant.faults)


def text_of_pair(exercise: Exercise, bank: Bank, first: Mutant, second: Mutant) -> str | None:
    """Return the text with both faults; None where the two edits exclude each other."""
    if not isinstance(first.change, Edit) or not isinstance(second.change, Edit):
        return _made(exercise, {**first.faults, **second.faults})
    try:
        return second.change.apply(first.change.apply(bank.reference[1]))
    except EditError:
        return None


def _made(exercise: Exercise, knobs: Mapping[str, object]) -> str:
    given = ", ".join(f"{name}={value!r}" for name, value in knobs.items())
    return one_file(
        exercise.misconceptions, f"from math import inf, nan\nglobals().update(make({given}))\n"
    )


def unfinished(exercise: Exercise, attempt: Attempt) -> Iterator[Attempt]:
    """Yield the attempt with the last functions as the stub has them: all but the first, all but
    the first two, and so on.
    """
    stub = stub_of(exercise)
    asked = {target_of(call) for call in read(exercise.fingerprints).calls}
    parts = {part.name: part for part in _definitions(stub) if part.name in asked}
    names = list(parts)
    for cut in range(1, len(names)):
        gone = names[cut:]
        stubs = "\n\n\n".join(ast.get_source_segment(stub, parts[name]) or "" for name in gone)
        text = f"{_without(attempt.text, set(gone))}\n\n\n{stubs}\n"
        yield Attempt(
            f"unfinished {attempt.kind}", f"{attempt.label} before {gone[0]}", text, attempt.due
        )


def _definitions(text: str) -> list[ast.FunctionDef | ast.ClassDef]:
    return [
        part for part in ast.parse(text).body if isinstance(part, ast.FunctionDef | ast.ClassDef)
    ]


def _without(text: str, names: set[str]) -> str:
    lines = text.splitlines()
    for part in reversed([part for part in _definitions(text) if part.name in names]):
        first = min([part.lineno, *(decorator.lineno for decorator in part.decorator_list)])
        del lines[first - 1 : part.end_lineno]
    return "\n".join(lines)


def _said(result: ExerciseResult) -> dict[str, list[str]]:
    functions = [", ".join(filter(None, (d.function, *d.also_in))) for d in result.diagnosis]
    ids = ["|".join((d.id, *d.alternatives)) for d in result.diagnosis]
    names = [f"{id_} in {where}" for id_, where in zip(ids, functions, strict=True)]
    said = {
        "names": names,
        "also": [d.id for d in result.also],
        "lines": [str(line.line) for line in result.lines],
    }
    return {kind: values for kind, values in said.items() if values}


def written(id_: str, every: int) -> list[str]:
    """Return a line of JSON for each attempt of one exercise."""
    course = load_course(ROOT)
    exercise = next(e for e in course.exercises if e.id == id_)
    with open_box(Level.NAMESPACES, course.limits.for_worker(), course.root) as box:
        plain = Judge(course, box, Settings(SECRET, exercises=(id_,), lines=False))
        searching = Judge(course, box, Settings(SECRET, exercises=(id_,), bounds=BY_COUNT))
        lines = []
        for attempt in attempts(course, box, exercise, every):
            judge, bounds = (searching, BY_COUNT) if attempt.has_lines else (plain, NO_LINES)
            source = AttemptSource(f"{exercise.stem}.py", attempt.text)
            home = check_source(
                read(exercise.fingerprints),
                source,
                box,
                course.limits.for_worker(),
                bounds,
                exercise,
            )
            sides = {
                "graded": _said(judge.grade_attempt("golden", exercise, source)),
                "home": _said(home),
            }
            label = f"{exercise.id}: {attempt.kind} {attempt.label}"
            said = {"attempt": label, "kind": attempt.kind, "due": attempt.due, **sides}
            lines.append(json.dumps(said, ensure_ascii=False))
        return lines


def write(path: Path, ids: Sequence[str], every: int) -> None:
    """Write what both sides say to a file."""
    chosen = [e.id for e in load_course(ROOT).exercises if not ids or e.id in ids]
    with ProcessPoolExecutor(usable()) as pool, path.open("w", encoding="utf-8") as out:
        found = pool.map(written, chosen, itertools.repeat(every))
        for id_, lines in zip(chosen, found, strict=True):
            out.writelines(f"{line}\n" for line in lines)
            print(f"{id_}: {len(lines)} attempts", file=sys.stderr, flush=True)


def compare(
    old: Mapping[str, Mapping[str, object]], new: Mapping[str, Mapping[str, object]]
) -> Iterator[str]:
    """Yield a sentence for each name that was won or lost, each order that changed, and then the
    counts.
    """
    counts: Counter[str] = Counter()
    for attempt in sorted(old.keys() & new.keys()):
        for side, kind in itertools.product(SIDES, ("names", "also", "lines")):
            before, after = (_values(each[attempt], side, kind) for each in (old, new))
            for change, values in _changes(before, after):
                counts[f"{side}: {kind} {change}"] += len(values)
                yield f"{attempt}, {side}: {kind} {change}: {', '.join(values)}"
    yield from (f"{count} {what}" for what, count in sorted(counts.items()))
    for label, each in (("old", old), ("new", new)):
        apart = [said for said in each.values() if _ids(said, "graded") != _ids(said, "home")]
        silent = sum(not _ids(said, "home") for said in apart)
        yield (
            f"{label}: {len(each)} attempts; the two sides have other names, or another order, on "
            f"{len(apart)}, and on {silent} of these the student's side has none"
        )
    yield from (f"only in one file: {attempt}" for attempt in sorted(old.keys() ^ new.keys()))


def figures(said: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    """Yield the rows of a table in Markdown: for each kind of attempt how many are named as they
    should be, on each side.
    """
    yield "| attempts | graded | at home | the two sides say the same |"
    yield "|---|---|---|---|"
    rows = [
        ("mutants, named first", "mutant"),
        ("the same, with later functions unfinished", "unfinished mutant"),
        ("pairs of mutants, both named", "pair"),
        ("right attempts, unnamed", "right"),
        ("unlisted wrong attempts, unnamed", "wrong"),
        ("right attempts with a small edit, named", "edit"),
    ]
    for title, kind in rows:
        of_kind = [attempt for attempt in said.values() if attempt["kind"] == kind]
        if kind == "unfinished mutant":  # the mistake may stand in what is not there
            of_kind = [attempt for attempt in of_kind if _names_more_than_the_stub(attempt)]
        held = [sum(_is_as_due(attempt, side) for attempt in of_kind) for side in SIDES]
        same = sum(_ids(attempt, "graded") == _ids(attempt, "home") for attempt in of_kind)
        yield (
            f"| {title} | {held[0]} of {len(of_kind)} | {held[1]} of {len(of_kind)} | {same} "
            f"of {len(of_kind)} |"
        )


def _names_more_than_the_stub(said: Mapping[str, object]) -> bool:
    return {*_ids(said, "graded"), *_ids(said, "home")} > {"stub_untouched"}


def _is_as_due(said: Mapping[str, object], side: str) -> bool:
    """Return whether the first name is the one that is due, or both are there; a name of an edit,
    and else none, where none is.
    """
    names = [{*name.split(" ")[0].split("|")} for name in _values(said, side, "names")]
    due = said["due"]
    assert isinstance(due, list)
    if len(due) == 1:
        return bool(names) and due[0] in names[0]
    if due:
        return all(any(id_ in alternatives for alternatives in names) for id_ in due)
    return bool(names) is (said["kind"] == "edit")


def _values(said: Mapping[str, object], side: str, kind: str) -> list[str]:
    found = said[side]
    assert isinstance(found, dict)
    return list(found.get(kind, []))


def _ids(said: Mapping[str, object], side: str) -> list[str]:
    return [name.split(" ")[0].split("|")[0] for name in _values(said, side, "names")]


def _changes(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    lost, won = [v for v in before if v not in after], [v for v in after if v not in before]
    if lost:
        yield "lost", lost
    if won:
        yield "won", won
    if not lost and not won and list(before) != list(after):
        yield "reordered", [f"{' > '.join(before)}, now {' > '.join(after)}"]


def _read(path: Path) -> dict[str, Mapping[str, object]]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return {said["attempt"]: said for said in map(json.loads, content.decode().splitlines())}


def main() -> None:
    """Write, compare or count."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["write", "compare", "figures"])
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--every", type=int, default=1)
    given = parser.parse_args()
    if len(given.files) != (2 if given.command == "compare" else 1):
        parser.error("compare takes two files, write and figures one")
    if given.command == "write":
        write(given.files[0], given.only, given.every)
    else:
        print(
            "\n".join(
                (compare if given.command == "compare" else figures)(*map(_read, given.files))
            )
        )


if __name__ == "__main__":
    main()
