"""From downloads to submitted/<student>/<assignment>/NN_name.py."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

from ..course import Assignment, Course
from ..course.dates import read_moment
from ..errors import CourseFault
from . import ENDINGS, is_archive, shown
from .archives import Limits, Reader, own_name
from .find import plain
from .folders import all_ids, commit_time, depth_of, understood
from .lay_out import Candidate, Memory, Origin, digest_of, digests, held, lay_out, paths_of, read_memory, tell_apart
from .notebook import without_outputs
from .platforms import CLONES, FOLDERS, Download, HandIn, Person, unwrapped
from .read import largest
from .roster import NoFolder, People, Roster
from .to_grade import Unread
from .which_exercise import Exercises, NotAsked, NotPlaced, Reading, place_of

LOCK = ".collecting"


@dataclass
class Collected:
    """What became of everything. not_taken, said: sentences, each with what to do next. platforms: by download."""

    laid: list[Candidate] = field(default_factory=list)
    not_taken: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    platforms: dict[str, list[str]] = field(default_factory=dict)

    def tell(self, download: Path, refused: Iterable[tuple[tuple[str, ...], str]]) -> None:
        """Say why something is not taken. refused: its path in the download, and what follows it."""
        where = shown(download.name)
        self.not_taken += [f"{where}: {'/'.join(map(shown, path))} {reason}" for path, reason in refused]


_Claims = dict[tuple[str, str], dict[Person, list[Candidate]]]


@dataclass
class _Run:
    """What one run has found. claims: of each student who claims to be that one."""

    exercises: Exercises
    people: People
    reader: Reader
    unread: Unread
    done: Collected = field(default_factory=Collected)
    readings: dict[str, Reading] = field(default_factory=lambda: defaultdict(Reading))
    claims: dict[str, _Claims] = field(default_factory=lambda: defaultdict(lambda: defaultdict(dict)))
    elsewhere: int = 0  # files of other assignments


def collect(
    course: Course,
    downloads: Sequence[Path],
    out: Path,
    roster: Roster | None = None,
    limits: Limits | None = None,
    only: Assignment | None = None,
    whose: str = "",
) -> Collected:
    """Lay out the downloads. Run again it changes nothing. Raises CourseFault; nothing is written before all is read.

    out: the folder to fill. only: of which assignment files are taken; None: of all. whose: the one student of whom all of it is;
    "": who it is has to be found out.
    """
    for download in downloads:
        if out.resolve().is_relative_to(download.resolve()):
            raise CourseFault(f"{out} is in {download}, which is read. Next: give --out a folder elsewhere")
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise CourseFault(f"{out} is no folder. Next: give --out another name")
    exercises, reader = Exercises(course, only), Reader(limits or Limits())
    taken = f"another course collect ({{}}) is writing to {out}. Next: wait for its end"
    with held(out / LOCK, taken), reader.files:
        memory = read_memory(out)
        run = _Run(exercises, People(roster, dict(memory.folders)), reader, Unread(exercises, out, memory))
        for path, listed in _listed(downloads, course, run, whose):
            _read(path, listed, run, is_known=bool(whose))
        return _written(run, out, memory)


def _listed(downloads: Sequence[Path], course: Course, run: _Run, whose: str) -> list[tuple[Path, Download]]:
    """List all downloads before any is understood: an archive may be one of several students'. Raises CourseFault."""
    found = []
    for path in downloads:
        members = run.reader.listed(path)
        if path.is_dir() and len(members) == 1 == len(members[0].path) and is_archive(members[0].name):
            path /= members[0].name  # a folder around a download
            members = run.reader.listed(path)
        found.append((path, Download(whose or path.resolve().name, tuple(members), bool(whose), run.people.is_known)))
        run.done.tell(path, run.reader.refused)
        run.reader.refused.clear()
    archives = [(path, each) for path, each in found if is_archive(path.name)]
    if len(archives) < 2 or all(_is_of_a_class(each, course) for _, each in archives):
        return found
    return [(path, replace(each, is_of_one=is_archive(path.name))) for path, each in found]


def _is_of_a_class(download: Download, course: Course) -> bool:
    """Return whether an archive looks like a platform's download, or has folders of several students, or an assignment's name."""
    name = unwrapped(download.name)
    if plain(name) in all_ids(course) or download.is_known(name):
        return plain(name) in all_ids(course)
    depth = depth_of(download.members, course)
    several = {m.path[depth] for m in download.members if 0 <= depth < len(m.path) - 1}
    return len(several) > 1 or any(each != FOLDERS for each in understood(download, course).platforms)


def _read(path: Path, download: Download, run: _Run, *, is_known: bool) -> None:
    """Read what each person has handed in, person by person, and note whose it would be."""
    done, closed, beside = run.done, list[tuple[str, HandIn]](), set[Assignment]()
    whole = [(m.path, m.closed) for m in download.members if m.closed and m.path == (path.name,)]
    is_ones = run.people.is_known(unwrapped(path.name)) or (download.is_of_one and run.people.roster is None)
    if whole and not is_ones:  # it may be of a whole class
        done.tell(path, whole)
        return
    made, persons = understood(download, run.exercises.course), defaultdict[Person, list[HandIn]](list)
    if made.platforms:
        done.platforms[path.name] = [*dict.fromkeys([*done.platforms.get(path.name, ()), *made.platforms])]
    done.tell(path, made.others)
    done.said += [f"{shown(path.name)}: left out as {kind}: {count}" for kind, count in made.left_out.items()]
    for hand_in in made.handed_in:
        persons[hand_in.person].append(hand_in)
    for person, files in persons.items():
        try:
            students = run.people.of(person)
        except NoFolder as error:
            done.tell(path, [(each.member.path, str(error)) for each in files])
            continue
        candidates, unread = _of_person(path, files, run)
        closed += [(student, each) for each in unread for student in students]
        if len(persons) == 1 and person.platform == FOLDERS and not is_known:
            candidates = _surely_of_one(candidates, done)
        beside |= {each.assignment for each in candidates}
        group, claimant = ("", replace(person, key=str(path))) if download.is_of_one else (str(path), person)
        for student in students if candidates else ():
            own = [replace(each, student=student) for each in candidates]
            run.claims[student][group, person.platform][claimant] = own
    done.tell(path, run.reader.refused)
    run.reader.refused.clear()
    run.elsewhere += run.unread.add(closed, shown(path.name), beside)


def _of_person(path: Path, files: Sequence[HandIn], run: _Run) -> tuple[list[Candidate], list[HandIn]]:
    """Return what may be laid out of a person's files and archives, and what cannot be read."""
    candidates, closed, budget = list[Candidate](), list[HandIn](), run.reader.budget()
    for hand_in in sorted(files, key=lambda each: is_archive(each.member.name)):  # plain files take nothing of it
        found = run.reader.opened(hand_in.member, budget)
        if hand_in.person.platform == CLONES:
            found = [each for each in found if run.exercises.is_in_place(each[0].path[:-1])] or found
        for member, content in found:
            name = hand_in.name if member.path == hand_in.member.path else member.name
            own = replace(hand_in, member=member, name=name)
            try:
                if member.closed:
                    closed.append(own)
                else:
                    candidates.append(_candidate(own, content, path, run))
            except NotAsked:
                run.elsewhere += 1
            except NotPlaced as error:
                run.done.tell(path, [(member.path, str(error))])
    return candidates, closed


def _candidate(hand_in: HandIn, content: bytes, download: Path, run: _Run) -> Candidate:
    """Return a file as it may be laid out, still without its student. Raises NotPlaced, NotAsked."""
    member, person, name, exercises = hand_in.member, hand_in.person, own_name(hand_in.name), run.exercises
    ending, path = PurePath(name).suffix.lower(), "/".join(map(shown, member.path))
    if ending not in ENDINGS or member.start is None:
        raise NotPlaced("is no script and no notebook. Next: ask for it as .py or .ipynb, if it was to be graded")
    most, before = largest(name, exercises.course.limits.source_kib), len(content)
    if before > most * 1024 and ending == ".ipynb":
        content = without_outputs(content)
    reading = run.readings[f"{person.platform} {person.key}"]
    assignment, stem = place_of(exercises.of(name, content, reading))
    if len(content) > most * 1024:
        reason = f"is laid out and will earn nothing: it has {before // 1024:,} KiB, and at most {most:,} are read"
        run.done.tell(download, [(member.path, f"{reason}. Next: ask for a smaller file")])
    elif len(content) < before:
        said = f"{path} has {before // 1024:,} KiB, and at most {most:,} are read: its outputs are left out"
        run.done.said.append(f"{shown(download.name)}: {said}")
    when = read_moment(commit_time(download, member.path)) if person.platform == CLONES else hand_in.when
    origin = Origin(
        platform=person.platform,
        order=hand_in.order,
        modified=member.modified,
        digest=digest_of(content),
        download=shown(download.name),
        path=path,
        handed_in=when.isoformat() if when else "",
        late=hand_in.late,
        named=hand_in.named,
    )
    is_named, is_plain = exercises.named(name) is not None, exercises.is_plain(name)
    rank = is_named + (is_plain and exercises.is_in_place(member.path[:-1]))
    return Candidate("", assignment, stem, ending, content, origin, is_plain, rank)


def _surely_of_one(candidates: Sequence[Candidate], done: Collected) -> list[Candidate]:
    """Return those of a download's only student that are surely of one, and say what is not.

    Files of one exercise that lie in one folder may be of several students: other words in their names may be those.
    """
    groups, sure = defaultdict[tuple[str, ...], list[Candidate]](list), list[Candidate]()
    for each in candidates:
        groups[each.origin.path.rpartition("/")[0], each.stem, each.ending].append(each)
    for group in groups.values():
        if len(digests(group)) < 2 or all(each.is_plain for each in group):
            sure += group
        else:
            said = "are of the same exercise, and may be of several students. Next: give each student a folder, there"
            done.not_taken.append(f"{group[0].origin.download}: {paths_of(group)} {said}")
    return sure


def _written(run: _Run, out: Path, memory: Memory) -> Collected:
    """Lay out what was found, student by student. Raises CourseFault."""
    done, people = run.done, run.people
    students = sorted({*run.claims, *(student for student, _ in run.unread.names)})
    if people.roster is not None and students and not people.is_found:
        said = "Next: give --roster a file that has their ids, e-mails or names"
        raise CourseFault(f"{people.roster.knows_nobody(students)}. Nothing is laid out. {said}")
    memory.note(*(["folder", f, key] for f, key in people.taken.items() if memory.folders.get(f) != key))
    taken: set[tuple[str, str]] = set()
    for student in sorted(run.claims):
        exercises, clear = defaultdict[str, list[Candidate]](list), list[list[Candidate]]()
        for candidate in _of_one_claimant(run.claims[student], done):
            exercises[candidate.stem].append(candidate)
        for _, candidates in sorted(exercises.items()):
            counting, laid, unclear = tell_apart(candidates, out, memory, run.readings[f"{student} again"])
            clear += [counting] * bool(counting)
            done.laid += laid
            done.not_taken += unclear
            taken.add((student, candidates[0].assignment.id))
        done.laid += lay_out(clear, out, memory)
    run.unread.record(taken)
    done.not_taken += run.unread.not_taken
    done.said += run.unread.said
    done.said += [f"{shown(student)}: {sentence}" for student, sentence in sorted(people.said.items())]
    done.said += [f"of other assignments, and left out: {run.elsewhere}"] * bool(run.elsewhere)
    return done


def _of_one_claimant(claims: _Claims, done: Collected) -> list[Candidate]:
    """Return what may be laid out of who claims to be one student: nothing of two persons of a platform, or of two archives."""
    found = []
    for (group, _), persons in claims.items():
        firsts = [candidates[0] for candidates in persons.values()]
        if len(firsts) == 1:
            found += next(iter(persons.values()))
            continue
        files = paths_of(firsts) if group else " and ".join(shown(each.key) for each in persons)
        said = f"{files} are of {len(firsts)} persons, and each of them would be {firsts[0].student!a}: none is taken"
        apart = "give --roster a file that tells them apart" if group else "the same without what is not that student's"
        done.not_taken.append(f"{firsts[0].origin.download}: {said}. Next: {apart}")
    return found
