"""What the pages say, and what they do to the folder that they are written to."""

import re
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import torch

from manyheads.course.course_yaml_schema import moment
from manyheads.judge.results_folder import ChangedPoints
from manyheads.report.class_summary import ClassList, ClassView
from manyheads.report.pages import write_pages
from manyheads.report.report_content import Labels, file_stems
from manyheads.report.terminal import exercise_report
from manyheads.result import (
    Adjustment,
    CheckResult,
    Diagnosed,
    ExerciseResult,
    FunctionResult,
    HandedIn,
    Outcome,
    ProvedLine,
    Result,
)
from manyheads.student.pictures import compare_tables
from manyheads.submission import NotGraded
from manyheads.submission.roster_and_times import Roster, Student
from tests import make

HOSTILE = """</style><script>document.title='taken'</script><img src=x onerror=alert(1)> "' & {{ 7 \
* 7 }} &lt;"""
NAMES = (
    "ada",
    "..",
    "a/b",
    "a\\b",
    "index.html",
    "O'Hara",
    "100%#?&;",
    "Ærøskøbing",
    "陳",
    "x" * 300,
    "é" * 120,
    ".x",
    " x",
    "-rf",
)


class Seen(HTMLParser):
    """The words and the elements of a page, as a parser of HTML sees them."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._inside: list[str] = []
        self._words: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))
        self.text = " ".join("".join(self._words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("td", "th", "wbr", "span", "b", "bdi", "br", "meta", "link", "rect", "svg"):
            self._words.append(" ")
        elif tag in ("td", "th", "br"):
            self._words.append(" | ")
        self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self._inside.append(f"/{tag}")
        if tag in ("span", "p", "dt", "dd", "h3", "summary"):
            self._words.append(" ")

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & {*self._inside[-1:]}:
            self._words.append(data)

    def links(self) -> list[str]:
        return [attributes["href"] or "" for tag, attributes in self.elements if tag == "a"]


def check(
    id_: str, score: float = 0, outcome: Outcome = "failed", evidence: str = "", hint: str = ""
) -> CheckResult:
    return make.check(id_, score, 2, outcome, title=f"does {id_}", evidence=evidence, hint=hint)


def exercise(
    *checks: CheckResult, id_: str = "dance", named: tuple[Diagnosed, ...] = (), **fields: Any
) -> ExerciseResult:
    return make.exercise(id_, *checks, diagnosis=named, **fields)


def graded_result(student: str, *exercises: ExerciseResult, **changed: object) -> Result:
    defaults = {"assignment": "heads", "seed": 3, "versions": {"torch": "2.13.0"}}
    return make.result(student, *exercises, **defaults | changed)


def write(folder: Path, *results: Result, **options: Any) -> Path:
    view = {
        key: options.pop(key) for key in ("members", "changed", "labels", "day") if key in options
    }
    return write_pages(ClassView(results, **view), folder, **options)


VIEW = Diagnosed(
    id="wrong_view",
    title="You viewed straight.",
    hint="Which axis first?",
    alternatives=("mix_batch",),
)
SCALE = Diagnosed(id="scale_missing", title="You did not scale.", hint="How large do scores get?")
GOOD = exercise(check("split", 2), check("merge", 2))
SEEN = (
    check("split", evidence="head 0 holds channels 4…7"),
    check("merge", evidence="it is not x"),
    check("shape", 2),
)
BAD = exercise(*SEEN, named=(VIEW, SCALE))
CRASHED = exercise(
    check("split", outcome="crashed", evidence="ended by SIGSEGV", hint="Try arange."),
    check("merge"),
)
HALF = exercise(
    *(c.model_copy(update={"function": "f" if c.id == "split" else "h"}) for c in SEEN),
    named=(VIEW.model_copy(update={"function": "f"}),),
    functions=(
        FunctionResult(
            name="f", state="wrong", check="does split", evidence="head 0 holds channels 4…7"
        ),
        FunctionResult(name="g", state="waiting", waits_for="h"),
        FunctionResult(name="h", state="unwritten"),
        FunctionResult(name="i", state="right"),
        FunctionResult(name="j", state="undefined"),
    ),
)
LINES = (
    ProvedLine(line=23, edit="q <b> → k"),
    ProvedLine(line=40, cell=3, line_in_cell=5, edit="a → b"),
)
LINED = BAD.model_copy(update={"lines": LINES})
MISSING = exercise(check("split", outcome="missing"), id_="mask")
PEOPLE = ClassList(
    Roster(
        (
            Student("u1", "Ada Lovelace", "Tuesday"),
            Student("u2", "Ben Bitdiddle", "Friday"),
            Student("u3", "Cat"),
        )
    )
)
LABELS = Labels({"heads": "Heads"}, {"dance": ("04", "The dance")}, "Many Heads")
CAME = HandedIn(source="clones", time=moment("2026-11-26T12:00Z"))


@pytest.mark.parametrize(
    "result",
    [GOOD, BAD, CRASHED, HALF],
    ids=["right", "two misconceptions", "crashed", "half written"],
)
def test_a_students_page_has_every_word_that_a_terminal_has(tmp_path, result):
    write(tmp_path, graded_result("ada", result))
    text = Seen(tmp_path / "students" / "ada.html").text
    fragments = (
        fragment
        for line in make.printed_lines(exercise_report(result), 400)
        for fragment in re.split(r"\s{3,}|hint: ", line)
    )
    assert [fragment for fragment in fragments if fragment.strip() not in text] == []


@pytest.mark.parametrize(
    ("exercises", "says", "silent"),
    [
        pytest.param(
            [BAD],
            ["does merge it is not x", "1 check passes: 2 / 2 does shape 2 / 2"],
            "→",
            id="more evidence and what passes",
        ),
        pytest.param(
            [BAD.model_copy(update={"note": "The .py counts."})],
            ["The .py counts."],
            "→",
            id="the note",
        ),
        pytest.param(
            [GOOD],
            ["Graded on cpu, isolation namespaces, seed 3, torch 2.13.0."],
            "Next:",
            id="how it was graded",
        ),
        pytest.param(
            [LINED], ["(line 23, or line 5 of code cell 3)"], "→", id="the line and never the edit"
        ),
        pytest.param(
            [GOOD.model_copy(update={"id": "a"}), BAD, MISSING],
            [
                (
                    "Ada Lovelace u1 Many Heads, 27 November 2026 Next: course check dance, for "
                    "04 The dance."
                ),
                "Heads points 6 / 12 exercises done 1 of 3 handed in 2026-11-26 12:00 UTC",
                "– mask: not handed in 0 / 2 Graded on",
            ],
            "0–",
            id="name, course, day, what comes next; one line is all of what is missing",
        ),
    ],
)
def test_on_a_students_page_stands(tmp_path, exercises, says, silent):
    results = [graded_result("u1", *exercises, handed_in=CAME), graded_result("u2", GOOD)]
    write(tmp_path, *results, members=PEOPLE, labels=LABELS, day=date(2026, 11, 27))
    page = Seen(tmp_path / "students" / "u1.html")
    assert [phrase for phrase in says if phrase not in page.text] == []
    assert silent not in page.text
    assert "Bitdiddle" not in page.text, "it names nobody else"
    assert [link for link in page.links() if not link.startswith("#")] == [], "and leads nowhere"


CRASHING = graded_result("fay", CRASHED)
WEAK = graded_result("ben", GOOD, isolation="process")
CHANGED = [ChangedPoints("ada", "heads", 31, 33.5), ChangedPoints(HOSTILE, "heads", 2, None)]


@pytest.mark.parametrize(
    ("results", "more", "says", "silent"),
    [
        pytest.param(
            [graded_result("ada", GOOD)],
            {},
            ["Misconceptions None was found. Scores Submissions by their share", "#scores-1"],
            ["can be forged", "#lines-1", "In fewer than 3 attempts"],
            id="a level that holds",
        ),
        pytest.param(
            [WEAK],
            {},
            [
                "submissions 1 mean 4.00 of 4 median 4 of 4 all points 1 of 1",
                "Graded below the isolation level namespaces: 1 of 1 (process).",
            ],
            [],
            id="a weak level",
        ),
        pytest.param(
            [graded_result("ada", GOOD), WEAK],
            {},
            ["Graded below the isolation level namespaces: 1 of 2 (process)."],
            [],
            id="for one",
        ),
        pytest.param(
            [graded_result("ada", GOOD)],
            {"left_out": ["results/ben/heads.json is not a result."]},
            [
                (
                    "Not in this report: 1 file that cannot be read. results/ben/heads.json is "
                    "not a result."
                )
            ],
            [],
            id="what cannot be read",
        ),
        pytest.param(
            [graded_result("ada", GOOD)],
            {"not_graded": [NotGraded(path="ben/work.zip", reason="is an archive. Next: open it")]},
            [
                (
                    "Handed in, and not graded: 1. What, and why ben/work.zip: is an archive. "
                    "Next: open it"
                )
            ],
            [],
            id="what is not graded",
        ),
        pytest.param(
            [graded_result("ada", GOOD)],
            {"changed": CHANGED},
            [
                (
                    "heads: points changed since the last run: 2. Whose ada: 31 → 33.5 "
                    f"{' '.join(HOSTILE.split())}: 2 → ?"
                )
            ],
            [],
            id="whose points changed",
        ),
        pytest.param(
            [graded_result("ada", LINED), graded_result("ben", GOOD)],
            {},
            [
                "ada | dance | line 23 | q <b> → k",
                "ada | dance | line 5 of code cell 3 | a → b",
                "#lines-1",
            ],
            [],
            id="the edits",
        ),
        pytest.param(
            [graded_result("u1", GOOD), graded_result("u2", BAD)],
            {"members": PEOPLE},
            [
                "Ada Lovelace u1 | Tuesday | 4",
                "all Friday Tuesday",
                "In 1 of 1 attempts 1 attempt: 1 in dance Who Ben Bitdiddle u2",
            ],
            [],
            id="names and sections",
        ),
        pytest.param(
            [graded_result("u1", GOOD)],
            {"members": PEOPLE},
            [
                "handed in nothing 2 of 3",
                "2 on the roster handed in nothing Ben Bitdiddle, Cat",
                "Ben Bitdiddle u2 | Friday | – | –",
                "Ben Bitdiddle u2 | –",
            ],
            ["students/u2.html"],
            id="who handed in nothing, in the table of scores and in that of checks",
        ),
        pytest.param(
            [graded_result("u1", GOOD), graded_result("zoe", BAD)],
            {"members": PEOPLE},
            [
                "submissions 2 1 of them count handed in nothing 2 of 3",
                "1 not on the roster, in no count, no mean and no histogram: zoe",
            ],
            ["You viewed straight."],
            id="who is not on the roster",
        ),
    ],
)
def test_on_the_class_page_stands(tmp_path, results, more, says, silent):
    page = Seen(write(tmp_path, *results, **more))
    text = f"{page.text} {page.links()}"
    assert [phrase for phrase in says if phrase not in text] == []
    assert [phrase for phrase in silent if phrase in text] == []


def test_a_page_to_show_in_class_names_no_student_and_no_rare_mistake(tmp_path):
    scale = BAD.model_copy(update={"diagnosis": (SCALE,), "lines": LINES[:1]})
    rare = exercise(*SEEN, id_="mask", named=(VIEW,))
    results = [graded_result(student, scale, rare) for student in ("u1", "u2")]
    write(
        tmp_path,
        *results,
        graded_result("u3", scale),
        CRASHING,
        members=PEOPLE,
        labels=LABELS,
        left_out=["u9.json"],
    )
    page = Seen(tmp_path / "without-names.html")
    shown = "3 attempts You did not scale. One such line: q <b> 3 in 04 The dance"
    rest = "In fewer than 3 attempts, and not shown: 1 misconception."
    assert [phrase for phrase in (shown, rest) if phrase not in page.text] == []
    names = (
        "u1",
        "Ada",
        "Ben",
        "Cat",
        "fay",
        "Tuesday",
        "u9",
        VIEW.title,
        "k 3",
        "students/",
    )
    text = f"{page.text} {page.elements}"
    assert [name for name in names if name in text] == []
    assert "script" not in [tag for tag, _ in page.elements]


def test_whatever_a_student_or_an_exception_wrote_is_text(tmp_path):
    named = Diagnosed(id=HOSTILE, title=HOSTILE, hint=HOSTILE, alternatives=(HOSTILE,))
    bad = exercise(
        check("x", outcome="crashed", evidence=HOSTILE, hint=HOSTILE),
        check(HOSTILE, evidence=HOSTILE + "."),
        check(HOSTILE + "ok", 2),
        id_=HOSTILE,
        named=(named, SCALE),
        note=HOSTILE,
    )
    decided = (Adjustment(rule="score", words=HOSTILE, before=1, after=0),)
    bad, fields = (
        bad.model_copy(update={"adjustments": decided}),
        {"isolation": HOSTILE, "device": HOSTILE},
    )
    result = graded_result(
        HOSTILE, bad, assignment=HOSTILE, versions={HOSTILE: HOSTILE}, adjustments=decided, **fields
    )
    page = write(
        tmp_path, result, left_out=[HOSTILE], not_graded=[NotGraded(path=HOSTILE, reason=HOSTILE)]
    )
    for path in (page, tmp_path / "students" / f"{file_stems([HOSTILE])(HOSTILE)}.html"):
        parsed_page = Seen(path)
        assert " ".join(HOSTILE.split()) in parsed_page.text
        tags = [tag for tag, _ in parsed_page.elements]
        # the class page has one of its own
        assert (tags.count("img"), tags.count("script")) == (0, path == page)
        assert not [
            name
            for _, attributes in parsed_page.elements
            for name in attributes
            if name.startswith("on")
        ]
        assert "49" not in parsed_page.text


@pytest.mark.parametrize("name", NAMES)
def test_the_class_page_leads_to_a_students_page_whatever_the_name(tmp_path, name):
    page = write(tmp_path, graded_result(name, GOOD))
    (link,) = [link for link in Seen(page).links() if link.startswith("students/")]
    assert re.fullmatch("[!-~]+", link)
    target = tmp_path / unquote(link)
    assert target.parent == tmp_path / "students"
    assert name in Seen(target).text or name != name.strip()


def test_no_two_names_share_a_page():
    names = [
        *NAMES,
        "a b",
        "a_b",
        "a.b",
        "../b",
        "a//b",
        "x" * 299,
        "Ada",
        "a.",
        "a",
        "nul",
        "e\u0301",
        "\u00e9",
    ]
    stem_of = file_stems(names)
    names.append(stem_of("Ada"))  # who is called as another's file
    stem_of = file_stems(names)
    assert len({stem_of(name).casefold().rstrip(". ") for name in names}) == len(names)


def test_the_page_of_a_student_who_is_gone_goes_too_and_no_other_file(tmp_path):
    write(tmp_path, graded_result("ada", GOOD), graded_result("ben", GOOD))
    unrelated_page = tmp_path / "students" / "mine.html"
    unrelated_page.write_text("<p>my own page</p>")
    write(tmp_path, graded_result("ada", GOOD))
    assert sorted(path.name for path in (tmp_path / "students").iterdir()) == [
        "ada.html",
        "mine.html",
    ]


def test_pictures_stand_with_the_attempt_they_are_of_and_on_no_other_page(tmp_path):
    picture = compare_tables(
        "weights, head 1", torch.eye(2), torch.eye(2) * 0.5, "query", "key", "weights"
    )
    results = [
        graded_result("ada", BAD, CRASHED.model_copy(update={"id": "other"})),
        graded_result("ben", BAD),
    ]
    write(
        tmp_path,
        *results,
        drawn={("ada", "heads", "dance"): [picture], ("ada", "heads", "gone"): [picture]},
    )
    ada, ben, index = (
        Seen(tmp_path / name) for name in ("students/ada.html", "students/ben.html", "index.html")
    )
    assert [tag for tag, _ in ada.elements].count("figure") == 1
    assert "weights, head 1: the largest difference is 0.5" in ada.text
    assert ada.text.index("weights, head 1") < ada.text.index("other")
    assert "course plot dance draws yours" in ada.text
    assert not any(tag == "figure" for page in (ben, index) for tag, _ in page.elements)
