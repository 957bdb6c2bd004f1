"""Several files of one student, of one exercise: which counts, where a rule says so; else none of them, and a sentence.

The platform's order is such a rule, and so is the time where files were not written at once: what unpacks or copies them writes them all
in the same minute. Of the rest, what has nothing written in it does not count, nor does a file without the exercise's name beside one
that has it, nor a copy beside the file in exercises/ of a whole repository.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from . import ENDINGS
from .lay_out import Candidate, Laid, Memory, State, digest_of
from .unwritten import is_unwritten
from .which_exercise import Reading

MOST_PATHS = 4  # in one sentence
APART = 60  # seconds: files whose times are nearer were copied or unpacked together


def tell_apart(
    candidates: Sequence[Candidate], out: Path, memory: Memory, reading: Reading
) -> tuple[list[Candidate], list[Laid], list[str]]:
    """Tell one student's files of one exercise apart, scripts and notebooks each for themselves. reading: of that student's files.

    Returns:
        What can be laid out, what became of others already, and sentences on those that nothing tells apart.
    """
    if len(several := _of_several(candidates)) > 1:
        first = several[0]
        said = f"are of several persons, and the roster takes each of them for {first.student!a}"
        next_ = "Next: give --roster a file that tells them apart"
        return [], [], [f"{first.origin.download}: {_paths_of(several)} {said}. {next_}"]
    rules: tuple[Callable[[Candidate], bool], ...] = (
        lambda c: (source := reading.source(c.ending, c.content)) is None or not is_unwritten(source),
        lambda c: c.is_named,
        lambda c: c.is_in_place,
    )
    clear: list[Candidate] = []
    laid: list[Laid] = []
    unclear: list[str] = []
    for ending in ENDINGS:
        ordered = sorted((c for c in candidates if c.ending == ending), key=lambda c: c.age)
        left = rivals = _rivals(ordered)
        if len(_contents(rivals)) < 2:
            clear += ordered
            continue
        for counts in rules:
            left = [candidate for candidate in left if counts(candidate)] or left
        if len(_contents(left)) == 1:
            clear += [c for c in ordered if c not in rivals or c is left[-1]]
            laid += [c.laid(State.OTHER) for c in rivals if c is not left[-1]]
        elif chosen := _chosen_by_hand(rivals, out, memory):
            laid += [c.laid(State.SAME if c is chosen else State.OTHER) for c in ordered]
        else:
            first = rivals[0]
            where = "" if len({rival.archive for rival in rivals}) > 1 else f"{first.origin.download}: "
            said = f"{_paths_of(rivals)} are of the same exercise, and nothing says which of them counts"
            next_ = f"Next: copy that one to {out / first.path}, then the same command again"
            unclear.append(f"{where}{said}. {next_}")
    return clear, laid, unclear


def surely_of_one(candidates: Sequence[Candidate]) -> tuple[list[Candidate], list[str]]:
    """Return those of a download that are surely of the students they seem to be, and a sentence for the others.

    Of a download that seems to be one student's, files of one exercise may be of several: they lie in one folder, and not
    all of their names are the exercise's own. Other words in them may be students' names.
    """
    groups: dict[tuple[str, ...], list[Candidate]] = defaultdict(list)
    for each in candidates:
        folder, _, _ = each.origin.path.rpartition("/")
        groups[folder, each.assignment.id, each.stem, each.ending].append(each)
    mixed = [g for g in groups.values() if len(_contents(g)) > 1 and not all(each.is_plain for each in g)]
    said = "are of the same exercise, and may be of several students. Next: give each student a folder, there"
    sentences = [f"{group[0].origin.download}: {_paths_of(group)} {said}" for group in mixed]
    return [each for each in candidates if not any(each in group for group in mixed)], sentences


def _paths_of(candidates: Sequence[Candidate]) -> str:
    """Return where they come from, for a sentence: of several downloads, with the archive."""
    several = len({(candidate.origin.download, candidate.archive) for candidate in candidates}) > 1
    paths = []
    for each in candidates[:MOST_PATHS]:
        is_whole = not several or each.origin.path.startswith(each.archive)
        paths.append(each.origin.path if is_whole else f"{each.archive}/{each.origin.path}")
    return " and ".join([*paths, f"{len(candidates) - MOST_PATHS} more"][: len(candidates)])


def _of_several(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return a file of each person of a download, where these are several: they have one name, which is all that the roster knows.

    Students may choose their names: the newest file would take the place of somebody else's.
    """
    first: dict[str, dict[str, Candidate]] = {}
    for candidate in candidates:
        if candidate.person:
            first.setdefault(candidate.origin.download, {}).setdefault(candidate.person, candidate)
    return next(([*found.values()] for found in first.values() if len(found) > 1), [])


def _rivals(ordered: Sequence[Candidate]) -> Sequence[Candidate]:
    """Return the newest, and those that nothing says to be older; all of them where several archives claim to be the student's."""
    if not ordered or len({candidate.archive for candidate in ordered if candidate.archive}) > 1:
        return ordered
    last = ordered[-1].origin
    same = [c for c in ordered if (c.origin.platform, c.origin.order) == (last.platform, last.order)]
    return [candidate for candidate in same if last.modified - candidate.origin.modified < APART]


def _contents(candidates: Iterable[Candidate]) -> set[str]:
    return {candidate.origin.digest for candidate in candidates}


def _chosen_by_hand(rivals: Sequence[Candidate], out: Path, memory: Memory) -> Candidate | None:
    """Return the one that a person has put where it goes. What an earlier run put there was chosen by nobody."""
    target = out / rivals[0].path
    if target.is_symlink() or not target.is_file() or rivals[0].path in memory.files:
        return None
    there = digest_of(target.read_bytes())
    return next((rival for rival in rivals if rival.origin.digest == there), None)
