"""The table of platforms: how each names what it lets an instructor download, as one expression over a file's path.

Students name what is within their hand-in, and could name a folder there as a platform names somebody else's. So an
expression is tried from the top of a path on, no deeper than where the paths of a download part ways, and never within a
student's archive.

Groups of an expression, a digit behind a name being another place of the same: `who` it is; `id` and `name` in that;
`login`, or `ends`, which ends with it after an underscore; `order` or `time`, by which attempts are ordered; `late`; `file`, as the
student named it; `named`, by which the platform knows a file again. `typed` stands in what was typed and is no file, `feedback`
in what went back, `beside` in what is nobody's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, cached_property
from os.path import commonprefix

from ..course import Course
from ..course.dates import read_moment
from .archives import Member, is_wanted


@dataclass(frozen=True)
class Person:
    """Somebody, or a group that hands in as one, as a platform knows them.

    key: the platform's own, which nobody else there has. folder: the name of a folder where no roster knows better.
    ids: what the platform says, by the roster's columns. logins: what may be the whole login, the likeliest first.
    ends: ends with the login, after an underscore.
    """

    platform: str
    key: str
    folder: str
    name: str = ""
    ids: tuple[tuple[str, str], ...] = ()
    logins: tuple[str, ...] = ()
    ends: str = ""


@dataclass(frozen=True)
class HandIn:
    """A file that somebody handed in.

    name: as the student named it. order: the platform's own of attempts, the newest last; equal where it has none.
    when: in UTC, where the platform says it. late: whether it says that. named: what it calls the file.
    """

    person: Person
    member: Member
    name: str
    order: float = 0.0
    when: datetime | None = None
    late: bool = False
    named: str = ""


@dataclass
class Understood:
    """What is made of a download. others: what is not taken, by its path, with why. left_out: how many files are of a kind."""

    platforms: list[str] = field(default_factory=list)
    handed_in: list[HandIn] = field(default_factory=list)
    others: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Download:
    """A download that has been listed.

    is_of_one: whether it is an archive of one student, whose name it has, whatever it holds.
    is_known: whether somebody on the roster has this id or name.
    """

    name: str
    members: tuple[Member, ...]
    is_of_one: bool
    is_known: Callable[[str], bool] = field(repr=False, compare=False)

    @cached_property
    def parting(self) -> int:
        """How many folders all files have in common."""
        return _parting([member.path for member in self.members])


def _parting(paths: Sequence[tuple[str, ...]]) -> int:
    if not paths:
        return 0
    first = min(paths)
    most = min(len(path) - 1 for path in paths)
    # What the first and the last share, all share.
    shared = (i for i, (one, other) in enumerate(zip(first, max(paths), strict=False)) if one != other)
    return min(next(shared, most), most)


_ARCHIVE = r"(?i:\.(?:zip|tgz|7z|rar|tar(?:\.gz|\.bz2|\.xz)?|gz))"


def unwrapped(name: str) -> str:
    """Return a folder's name; of an archive that stands for a folder, without its suffix."""
    return re.sub(rf"{_ARCHIVE}\Z", "", name)


CLONES, FOLDERS = "clones", "folders"
BESIDE = "nobody's hand-in"
_TABLE = re.compile(r"^(?:[^/]+/)?[^/]+\.(?:xlsx?|csv)$")  # beside the folder of all hand-ins
_TIME = r"(?:\d{1,2}\.? \w+|\w+ \d{1,2}),? \d{4} \d{1,2}:?\d{2}(?: ?[AaPp]\.?[Mm]\.?)?"
_MOODLES = r"(?P<who>(?P<name>[^_/]+)(?:_(?P<id>\d{1,18}))?)"
_SAKAIS = r"(?P<who{0}>(?P<name{0}>[^/]+?) ?\((?P<id{0}>[^()/]+)\)|[^/]+?)"


@dataclass(frozen=True)
class Row:
    """A platform. In its expression ids of assignments stand in place of {ids}.

    folder: of a student with an id. columns: the roster's, which `id` may be of. cut: the sign between the login and what all
    hand-ins of a download begin with. at_parting: `who` stands where paths part ways, and nowhere above. whole: what else lies in
    the folder of `who` is nobody's. sure: what looks like feedback is that, also of somebody who handed in nothing.
    accounts: `who` chose that name: it is looked for as a GitHub name alone.
    """

    platform: str
    expression: str
    folder: str = "{who}"
    columns: tuple[str, ...] = ()
    cut: str = ""
    at_parting: bool = False
    whole: bool = False
    sure: bool = True
    accounts: bool = False

    def read(self, download: Download, members: Sequence[Member], course: Course, done: Understood) -> list[Member]:
        """Take in what this platform knows of some members of a download, and return those that it knows nothing of."""
        expression = _compiled(self.expression, tuple(assignment.id for assignment in course.assignments))
        within = [m.path for m in download.members if not _TABLE.search("/".join(m.path))] if self.at_parting else []
        at = 1 + (_parting(within) if self.at_parting else download.parting)
        found = [(member, self._groups(expression, (download.name, *member.path), at)) for member in members]
        whose = [groups for _, groups in found if groups and not groups["beside"]]
        have = {groups["who"]: groups["root"] for groups in whose if not any(map(groups.get, _KINDS))}
        roots = {*have.values()} if self.whole else set()
        prefixes = _prefixes([groups["who"] for groups in whose], self.cut, download, course) if self.cut else []
        left = list[Member]()
        for member, groups in found:
            kind = next((kind for kind in _KINDS if groups.get(kind)), "")
            is_sure = {"": True, "typed": True, "feedback": self.sure, "beside": self.sure and bool(have)}[kind]
            above = ("/".join((download.name, *member.path[:i])) for i in range(len(member.path)))
            if self.whole and not (groups and is_wanted(member.name)) and not roots.isdisjoint(above):
                done.left_out[BESIDE] += 1
            elif not groups or not (is_sure or groups["who"] in have):
                left.append(member)
            elif kind == "typed" and groups["who"] not in have:
                said = f"is text or a link typed into {self.platform}, or a note, and no file. Next: ask for the file"
                done.others.append((member.path, said))
            elif kind:
                done.left_out[_KINDS[kind]] += 1
            else:
                done.handed_in.append(self._hand_in(member, groups, prefixes, course.file.time_zone or ""))
        return left

    def _groups(self, expression: re.Pattern[str], path: Sequence[str], at: int) -> dict[str, str]:
        """Return what the expression finds, from the top of a path on; nothing where it does not fit. at: no deeper."""
        for depth in range(min(at + 1, len(path))):
            if match := expression.fullmatch("/".join(path[depth:])):
                found = dict.fromkeys(_GROUPS, "")
                found |= {name.rstrip("0123456789"): text for name, text in match.groupdict().items() if text}
                if not self.at_parting or depth == at or found["beside"]:
                    end = depth + 1 + ("all" in found)
                    return found | {"root": "/".join(path[:end])}
        return {}

    def _hand_in(self, member: Member, found: Mapping[str, str], prefixes: Sequence[int], zone: str) -> HandIn:
        who, id_, time = unwrapped(found["who"]), found["id"], _clock(found["time"])
        logins = tuple(who[length:] for length in prefixes) or (found["login"],)
        short = logins[-1] if prefixes else who
        folder = self.folder.format(who=short, id=id_, name=found["name"]) if id_ else short
        ids, called = tuple((column, id_) for column in self.columns if id_), found["name"] or short
        if self.accounts:
            ids, logins, called = tuple(("github", login) for login in logins), (), ""
        person = Person(self.platform, folder if id_ else who, folder, called, ids, logins, found["ends"])
        in_order = read_moment(time, "UTC")
        order = float(re.sub(r"\D", "", found["order"]) or (in_order.timestamp() if in_order else 0))
        name = found["file"].rpartition("/")[2]
        if not (name and member.name.endswith(name)):  # it is the name of an archive that was unpacked in place
            name = member.name
        return HandIn(person, member, name, order, read_moment(time, zone), bool(found["late"]), found["named"])


_KINDS = {
    "typed": "text or a note beside a file that was handed in",
    "feedback": "feedback that went back to students",
    "beside": BESIDE,
}
_GROUPS = ("who", "id", "name", "login", "ends", "order", "time", "late", "file", "named", *_KINDS)


@cache
def _compiled(expression: str, ids: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(expression.replace("{ids}", "|".join(map(re.escape, ids))), re.DOTALL)


def _prefixes(whole: Sequence[str], sign: str, download: Download, course: Course) -> list[int]:
    """Return how long what stands before logins may be, the shortest first: all begin with it, up to a sign."""
    named = [f"{each.id.replace('_', joint)}{sign}" for each in course.assignments for joint in "_-"]
    folders = (download.name, *(download.members[0].path[: download.parting] if whole else ()))
    named += [f"{name.removesuffix('-submissions')}-" for name in folders if name.endswith("-submissions")]
    for slug in named if whole else ():
        if all(text.lower().startswith(slug.lower()) and len(text) > len(slug) for text in whole):
            return [len(slug)]
    beside = {m.path[download.parting] for m in download.members}  # also of whom this platform knows nothing
    names = {*whole, *(beside if beside.issuperset(whole) else ())}
    shared = commonprefix(sorted(names)) if len(names) > 1 else ""  # noqa: RUF071, letter by letter is what is meant
    return [0, *(found.end() for found in re.finditer(re.escape(sign), shared))]


def _clock(text: str) -> str:
    """Return a time as ISO 8601; as it is where its months are of another language."""
    if re.fullmatch(r"\d{4}(-\d\d){5}", text):
        return f"{text[:10]} {text[11:].replace('-', ':')}"
    short = re.sub(r"([A-Za-z]{3})[a-z]+", r"\1", re.sub(r"[,.:]", "", text))  # Nov 20 2026 1102 AM, 5 Mar 2026 612 PM
    short = re.sub(r" (\d{3})(?= |$)", r" 0\1", short)
    for form in ("%b %d %Y %I%M %p", "%d %b %Y %I%M %p", "%d %b %Y %H%M") if text else ():
        with suppress(ValueError):
            return datetime.strptime(short, form).replace(tzinfo=UTC).strftime("%Y-%m-%d %H:%M")
    return text


ROWS = (
    Row(  # nbgrader/exchange/default/submit.py: user+assignment+time+random in inbound/
        "nbgrader",
        r"(?P<who>(?P<login>[^+/]+))\+[^+/]+\+(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^+/]*)(?:\+[^+/]*)?/(?P<file>.*)",
    ),
    Row(  # mod/assign/classes/downloader.php; without "Download submissions in folders" all of it stands before a file's name
        "Moodle",
        rf"(?P<named>{_MOODLES}_assign(?:(?P<feedback>feedback)|submission)_(?:(?P<typed>onlinetext)|[a-z]+)_?)(?P<file>.*)",
    ),
    Row(  # lib/content_zipper.rb takes digits between underscores out of names: the first two numbers are the ids
        "Canvas",
        r"(?P<named>(?:(?P<late>LATE_)?(?P<who>anon_(?=\d{0,4}[A-Za-z])[A-Za-z0-9]{5})"
        r"|(?P<name>[^/]*?)_(?P<late2>LATE_)?(?P<who2>(?P<id>\d{1,18})))"
        r"_(?:(?P<typed>(?:text|link)\.html)|(?P<order>\d{1,18})_(?P<file>[^/]+)))(?:/.*)?",
        "{name}_{id}",
        ("canvas_id",),
    ),
    Row(  # what its numbers count is not documented: they are kept whole, and two students of one name stay two
        "Brightspace",
        rf"(?P<who>(?P<id>\d{{1,18}}-\d{{1,18}}) ?- (?P<name>[^/]+?)) ?- (?P<time>{_TIME})(?: ?- (?P<file>[^/]+)|{_ARCHIVE})?(?:/.*)?"
        r"|(?P<who2>(?P<beside>index\.html))",
        "{name}_{id}",
    ),
    Row(  # of a single name nobody can tell the assignment's from the user's, and it stays whole
        "Blackboard",
        rf"(?P<who>(?P<ends>[^/]+?))_attempt_(?P<time>\d{{4}}(?:-\d\d){{5}})(?:(?P<typed>\.txt)|(?:_(?P<file>[^/]+)|{_ARCHIVE})?(?:/.*)?)",
        cut="_",
    ),
    Row(
        "Sakai",
        rf"{_SAKAIS.format('')}[/_](?i:(?P<feedback>feedback)|submission)(?i: attachment\(s\))[/_](?P<file>.*)"
        rf"|{_SAKAIS.format(2)}/(?:(?P<typed>(?i:[^/]*_submissiontext\.html))|(?P<beside>(?i:comments\.txt|feedbacktext\.html)))"
        r"|(?P<who3>(?P<beside2>grades\.(?:csv|xlsx?)))",
        "{id}",
        ("email", "login", "sis_id"),
    ),
    Row(  # older ones give two folders for each student: "ada_drop" is what was handed in, "ada_return" what went back
        "OpenOLAT",
        r"(?P<who>[^/]+)/\d{1,3}_(?:(?P<feedback>corrections)|(?P<beside>task|solutions?))(?:_[^/]*)?/.*"
        r"|(?P<who2>(?P<ends>(?P<login>[^/]+)))/(?P<order>\d{1,3})_(?:submissions|revisions)(?:_[^/]*)?/(?P<file>.*)"
        r"|(?P<who3>(?P<ends2>(?P<login2>[^/]+?)))_(?:drop|(?P<feedback2>return))(?:box)?/(?P<file2>.*)",
        sure=False,
    ),
    Row("OpenOLAT", r"(?P<who>(?P<login>[^/]+))/[^/]+_(?:drop|(?P<feedback>return))(?:box)?/(?P<file>.*)", sure=False),
    Row(  # each time that somebody hands in is a revision; a school that gives no ids has the name alone
        "Schoology",
        r"(?P<who>(?P<name>[^/]*[^/\s]) - (?P<id>[^/\s]+)|[^/]+)/"
        r"(?i:revision (?P<order>\d{1,9})(?: ?- ?(?:(?P<late>late)|[^/]*))?)/(?P<file>.*)",
        "{id}",
        ("sis_id",),
    ),
    Row(  # a repository's folder, or GitHub's zip of one, with its branch behind its name; or all that Classroom put together
        CLONES,
        rf"(?P<who>[^/]+?)(?:(?:-main|-master)?{_ARCHIVE})?/exercises/(?:{{ids}})/(?P<file>.*)"
        rf"|(?P<who2>[^/]+?)-(?:main|master){_ARCHIVE}"
        rf"|(?P<all>[^/]+)-submissions/(?P<who3>(?P=all)-[^/]+?)(?:{_ARCHIVE})?(?:/(?P<file2>.*))?",
        cut="-",
        whole=True,
        accounts=True,
    ),
    Row(  # where a student uploads a name again, it keeps both, and counts from 2; teams are folders, and read as folders
        "ILIAS",
        r"(?P<who>(?P<ends>(?P<name>[^_/]+_[^_/]+)_(?P<login>[^/]+))_\d{1,18})/(?:[^/]+/)*"
        r"(?:(?P<late>(?i:late submission|versp[^/]{1,2}tete abgabe)) - )?(?P<file>[^/]+?(?: \((?P<order>\d{1,4})\))?(?:\.[^./]*)?)"
        r"|(?P<who2>(?P<beside>[^/]+\.(?:xlsx?|csv)))",
        at_parting=True,
    ),
)
