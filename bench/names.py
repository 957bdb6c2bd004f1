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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from manyheads.authoring.make_stub import stub_of
from manyheads.authoring.verify.wrong_programs import FaultBench
from manyheads.box import open_box
from manyheads.box.connection import Box
from manyheads.box.level_and_device_names import Level
from manyheads.checks.hidden_check import Edit
from manyheads.checks.runner import target_of
from manyheads.course import Course, Exercise, load_course
from manyheads.diagnosis import Bank, BuiltMutant, load_bank
from manyheads.diagnosis.bank import with_both_edits
from manyheads.diagnosis.recording_file import read
from manyheads.judge.edit_search import Bounds
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.judge.judge_process import usable_cpu_count
from manyheads.result import ExerciseResult
from manyheads.student.check_attempt import check_source
from manyheads.submission import Source

from .one_file import one_file

ROOT = Path(__file__).parents[1]
PAIRS, EDITS = 25, 30  # of each exercise
SECRET = b"golden names"
BY_COUNT = Bounds(seconds=60.0)  # by the count alone: a slow machine finds as much as a fast one
NO_LINES = Bounds(edits=0)
SIDES = ("graded", "home")


@dataclass(frozen=True)
class SampledAttempt:
    """An attempt's text.

    label: what tells it from the others of its kind, whatever they are. due: the misconceptions
        that it has.
    has_lines: whether it is a person's text, whose line can be searched for.
    """

    category: str
    label: str
    text: str
    expected: tuple[str, ...] = ()
    has_lines: bool = False


def attempts(course: Course, box: Box, exercise: Exercise, stride: int) -> Iterator[SampledAttempt]:
    """Yield one of n attempts of each kind of an exercise, those with the lowest digests, and each
    of them unfinished.
    """
    for _, of_kind in itertools.groupby(
        _complete_attempts(course, box, exercise), key=lambda attempt: attempt.category
    ):
        by_digest = sorted(of_kind, key=lambda attempt: digest(attempt.label))
        for attempt in by_digest[: math.ceil(len(by_digest) / stride)]:
            yield attempt
            yield from unfinished_attempts(exercise, attempt)


def _complete_attempts(course: Course, box: Box, exercise: Exercise) -> Iterator[SampledAttempt]:
    bank = load_bank(exercise)
    # of two ids with the same code the first
    by_code = {code_of(mutant): mutant for mutant in reversed(bank.mutants)}
    for code, mutant in reversed(by_code.items()):
        yield SampledAttempt("mutant", code, text_of(exercise, mutant), (mutant.id,))
    for first, second in pairs_of(bank):
        text = text_of_pair(exercise, bank, first, second)
        if text is not None:
            yield SampledAttempt(
                "pair", f"{code_of(first)} and {code_of(second)}", text, (first.id, second.id)
            )
    for category, paths in (
        ("right", exercise.right_attempts()),
        ("wrong", exercise.wrong_attempts()),
    ):
        for path in paths:
            yield SampledAttempt(category, path.stem, path.read_text("utf-8"), has_lines=True)
    faults = FaultBench(course, box, exercise).faults()
    for fault in itertools.islice(faults, EDITS):
        yield SampledAttempt(
            "edit",
            f"{fault.attempt} {fault.edit.description}",
            fault.edit.after.text,
            has_lines=True,
        )


def digest(*values: object) -> str:
    """Return eight hexadecimal digits that tell these parts from others."""
    return hashlib.sha256(repr(values).encode()).hexdigest()[:8]


def code_of(mutant: BuiltMutant) -> str:
    """Return a digest of how a mutant differs from the reference, which its place in the bank and
    its id do not change.
    """
    return digest(sorted(map(repr, mutant.faults.items())))


def pairs_of(bank: Bank) -> Sequence[tuple[BuiltMutant, BuiltMutant]]:
    """Return pairs of mutants with two ids and no fault in common: those whose codes give the
    lowest digests.
    """
    pairs = [
        (first, second)
        for first, second in itertools.combinations(bank.mutants, 2)
        if first.id != second.id
        and not first.faults.keys() & second.faults.keys()
        and bool(first.edited_text) == bool(second.edited_text)
    ]
    codes = {id(mutant): code_of(mutant) for mutant in bank.mutants}
    pairs.sort(key=lambda pair: digest(*(codes[id(mutant)] for mutant in pair)))
    return pairs[:PAIRS]


def text_of(exercise: Exercise, mutant: BuiltMutant) -> str:
    """Return a mutant's text: the edited reference, or the bank with a call of its `make`."""
    return mutant.edited_text or _text_from_bank(exercise, mutant.faults)


def text_of_pair(
    exercise: Exercise, bank: Bank, first: BuiltMutant, second: BuiltMutant
) -> str | None:
    """Return the text with both faults; None where the two edits exclude each other."""
    if not isinstance(first.change, Edit) or not isinstance(second.change, Edit):
        return _text_from_bank(exercise, {**first.faults, **second.faults})
    return with_both_edits(bank.reference[1], first.change, second.change)


def _text_from_bank(exercise: Exercise, knobs: Mapping[str, object]) -> str:
    arguments = ", ".join(f"{name}={value!r}" for name, value in knobs.items())
    return one_file(
        exercise.misconceptions, f"from math import inf, nan\nglobals().update(make({arguments}))\n"
    )


def unfinished_attempts(exercise: Exercise, attempt: SampledAttempt) -> Iterator[SampledAttempt]:
    """Yield the attempt with the last functions as the stub has them: all but the first, all but
    the first two, and so on.
    """
    stub = stub_of(exercise)
    targets = {target_of(call) for call in read(exercise.fingerprints).calls}
    definitions = {
        definition.name: definition
        for definition in _definitions(stub)
        if definition.name in targets
    }
    names = list(definitions)
    for cut in range(1, len(names)):
        gone = names[cut:]
        stubs = "\n\n\n".join(
            ast.get_source_segment(stub, definitions[name]) or "" for name in gone
        )
        text = f"{_remove_functions(attempt.text, set(gone))}\n\n\n{stubs}\n"
        yield SampledAttempt(
            f"unfinished {attempt.category}",
            f"{attempt.label} before {gone[0]}",
            text,
            attempt.expected,
        )


def _definitions(text: str) -> list[ast.FunctionDef | ast.ClassDef]:
    return [
        statement
        for statement in ast.parse(text).body
        if isinstance(statement, ast.FunctionDef | ast.ClassDef)
    ]


def _remove_functions(text: str, names: set[str]) -> str:
    lines = text.splitlines()
    for definition in reversed(
        [definition for definition in _definitions(text) if definition.name in names]
    ):
        start = min(
            [definition.lineno, *(decorator.lineno for decorator in definition.decorator_list)]
        )
        del lines[start - 1 : definition.end_lineno]
    return "\n".join(lines)


def _summary(result: ExerciseResult) -> dict[str, list[str]]:
    functions = [", ".join(filter(None, (d.function, *d.also_in))) for d in result.diagnosis]
    ids = ["|".join((d.id, *d.alternatives)) for d in result.diagnosis]
    names = [f"{id_} in {where}" for id_, where in zip(ids, functions, strict=True)]
    summary = {
        "names": names,
        "also": [d.id for d in result.also],
        "lines": [str(line.line) for line in result.lines],
    }
    return {field: values for field, values in summary.items() if values}


def attempt_records(id_: str, stride: int) -> list[str]:
    """Return a line of JSON for each attempt of one exercise."""
    course = load_course(ROOT)
    exercise = next(e for e in course.exercises if e.id == id_)
    with open_box(Level.NAMESPACES, course.limits.for_worker(), course.root) as box:
        plain = Judge(course, box, Settings(SECRET, exercises=(id_,), lines=False))
        searching = Judge(course, box, Settings(SECRET, exercises=(id_,), bounds=BY_COUNT))
        lines = []
        for attempt in attempts(course, box, exercise, stride):
            judge, bounds = (searching, BY_COUNT) if attempt.has_lines else (plain, NO_LINES)
            source = Source(f"{exercise.stem}.py", attempt.text)
            home = check_source(
                read(exercise.fingerprints),
                source,
                box,
                course.limits.for_worker(),
                bounds,
                exercise,
            )
            sides = {
                "graded": _summary(judge.grade_attempt("golden", exercise, source)),
                "home": _summary(home),
            }
            label = f"{exercise.id}: {attempt.category} {attempt.label}"
            record = {"attempt": label, "kind": attempt.category, "due": attempt.expected, **sides}
            lines.append(json.dumps(record, ensure_ascii=False))
        return lines


def write(path: Path, ids: Sequence[str], stride: int) -> None:
    """Write what both sides say to a file."""
    chosen = [e.id for e in load_course(ROOT).exercises if not ids or e.id in ids]
    with ProcessPoolExecutor(usable_cpu_count()) as pool, path.open("w", encoding="utf-8") as out:
        results = pool.map(attempt_records, chosen, itertools.repeat(stride))
        for id_, lines in zip(chosen, results, strict=True):
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
        for side, field in itertools.product(SIDES, ("names", "also", "lines")):
            before, after = (_values(records[attempt], side, field) for records in (old, new))
            for change, values in _changes(before, after):
                counts[f"{side}: {field} {change}"] += len(values)
                yield f"{attempt}, {side}: {field} {change}: {', '.join(values)}"
    yield from (f"{count} {metric}" for metric, count in sorted(counts.items()))
    for label, records in (("old", old), ("new", new)):
        apart = [
            record for record in records.values() if _ids(record, "graded") != _ids(record, "home")
        ]
        silent = sum(not _ids(record, "home") for record in apart)
        yield (
            f"{label}: {len(records)} attempts; the two sides have other names, or another order,"
            f" on {len(apart)}, and on {silent} of these the student's side has none"
        )
    yield from (f"only in one file: {attempt}" for attempt in sorted(old.keys() ^ new.keys()))


def figures(records: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
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
    for title, category in rows:
        of_kind = [attempt for attempt in records.values() if attempt["kind"] == category]
        if category == "unfinished mutant":  # the mistake may be in a function that is a stub now
            of_kind = [attempt for attempt in of_kind if _names_more_than_the_stub(attempt)]
        correct = [_count_expected(of_kind, side) for side in SIDES]
        same = sum(_ids(attempt, "graded") == _ids(attempt, "home") for attempt in of_kind)
        yield (
            f"| {title} | {correct[0]} of {len(of_kind)} | {correct[1]} of {len(of_kind)} | {same} "
            f"of {len(of_kind)} |"
        )


def _names_more_than_the_stub(record: Mapping[str, object]) -> bool:
    return {*_ids(record, "graded"), *_ids(record, "home")} > {"stub_untouched"}


def _count_expected(records: Iterable[Mapping[str, object]], side: str) -> int:
    return sum(_has_expected_names(record, side) for record in records)


def _has_expected_names(record: Mapping[str, object], side: str) -> bool:
    """Return whether an attempt has the names that it should have.

    A mutant has its name first, and a pair has both names. A small edit has any name. All other
    attempts have none.
    """
    names = [{*name.split(" ")[0].split("|")} for name in _values(record, side, "names")]
    expected = record["due"]
    assert isinstance(expected, list)
    if len(expected) == 1:
        return bool(names) and expected[0] in names[0]
    if expected:
        return set[str]().union(*names).issuperset(expected)
    return bool(names) is (record["kind"] == "edit")


def _values(record: Mapping[str, object], side: str, field: str) -> list[str]:
    side_report = record[side]
    assert isinstance(side_report, dict)
    return list(side_report.get(field, []))


def _ids(record: Mapping[str, object], side: str) -> list[str]:
    return [name.split(" ")[0].split("|")[0] for name in _values(record, side, "names")]


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
    return {record["attempt"]: record for record in map(json.loads, content.decode().splitlines())}


def main() -> None:
    """Write, compare or count."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["write", "compare", "figures"])
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--every", type=int, default=1)
    options = parser.parse_args()
    if len(options.files) != (2 if options.command == "compare" else 1):
        parser.error("compare takes two files, write and figures one")
    if options.command == "write":
        write(options.files[0], options.only, options.every)
    else:
        print(
            "\n".join(
                (compare if options.command == "compare" else figures)(*map(_read, options.files))
            )
        )


if __name__ == "__main__":
    main()
