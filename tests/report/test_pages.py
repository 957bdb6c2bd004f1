"""What the pages say, and what they do to the folder that they are written to."""

import re
from datetime import date
from html.parser import HTMLParser
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
    Diagnosed,
    FunctionResult,
    HandedIn,
    ProvedLine,
)
from manyheads.student.pictures import compare_tables
from manyheads.submission import NotGraded
from manyheads.submission.roster_and_times import Roster, Student
from tests import make
from tests.report.conftest import dance_exercise, heads_result

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

    def __init__(self, page):
        super().__init__()
        self.elements = []
        self._tag = ""
        self._words = []
        self.feed(page.read_text(encoding="utf-8"))
        self.text = " ".join("".join(self._words).split())
        self.links = [attributes["href"] for tag, attributes in self.elements if tag == "a"]

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._tag = tag
        if tag in ("td", "th", "br"):
            self._words.append(" | ")
        elif tag not in ("wbr", "span", "b", "bdi", "meta", "link", "rect", "svg"):
            self._words.append(" ")

    def handle_endtag(self, tag):
        self._tag = ""
        if tag in ("span", "p", "dt", "dd", "h3", "summary"):
            self._words.append(" ")

    def handle_data(self, data):
        if self._tag not in ("style", "script"):
            self._words.append(data)


def check_of_two_points(id_, score=0, outcome="failed", evidence="", hint=""):
    return make.check(id_, score, 2, outcome, title=f"does {id_}", evidence=evidence, hint=hint)


def write_class_pages(folder, *results, **options):
    names = {"members", "changed", "labels", "day"} & options.keys()
    view = {name: options.pop(name) for name in names}
    return write_pages(ClassView(results, **view), folder, **options)


VIEW = Diagnosed(
    id="wrong_view",
    title="You viewed straight.",
    hint="Which axis first?",
    alternatives=("mix_batch",),
)
SCALE = Diagnosed(id="scale_missing", title="You did not scale.", hint="How large do scores get?")
GOOD = dance_exercise(check_of_two_points("split", 2), check_of_two_points("merge", 2))
SEEN = (
    check_of_two_points("split", evidence="head 0 holds channels 4…7"),
    check_of_two_points("merge", evidence="it is not x"),
    check_of_two_points("shape", 2),
)
BAD = dance_exercise(*SEEN, named=(VIEW, SCALE))
CRASHED = dance_exercise(
    check_of_two_points(
        "split", outcome="crashed", evidence="ended by SIGSEGV", hint="Try arange."
    ),
    check_of_two_points("merge"),
)
HALF = dance_exercise(
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
MISSING = dance_exercise(check_of_two_points("split", outcome="missing"), id_="mask")
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
    write_class_pages(tmp_path, heads_result("ada", result))
    text = Seen(tmp_path / "students" / "ada.html").text
    report = "\n".join(make.printed_lines(exercise_report(result), 400))
    fragments = re.split(r"\n|\s{3,}|hint: ", report)
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
    results = [heads_result("u1", *exercises, handed_in=CAME), heads_result("u2", GOOD)]
    write_class_pages(tmp_path, *results, members=PEOPLE, labels=LABELS, day=date(2026, 11, 27))
    page = Seen(tmp_path / "students" / "u1.html")
    assert [phrase for phrase in says if phrase not in page.text] == []
    assert silent not in page.text
    assert "Bitdiddle" not in page.text, "it names nobody else"
    assert [link for link in page.links if not link.startswith("#")] == [], "and leads nowhere"


CRASHING = heads_result("fay", CRASHED)
WEAK = heads_result("ben", GOOD, isolation="process")
CHANGED = [ChangedPoints("ada", "heads", 31, 33.5), ChangedPoints(HOSTILE, "heads", 2, None)]


@pytest.mark.parametrize(
    ("results", "more", "says", "silent"),
    [
        pytest.param(
            [heads_result("ada", GOOD)],
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
            [heads_result("ada", GOOD), WEAK],
            {},
            ["Graded below the isolation level namespaces: 1 of 2 (process)."],
            [],
            id="for one",
        ),
        pytest.param(
            [heads_result("ada", GOOD)],
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
            [heads_result("ada", GOOD)],
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
            [heads_result("ada", GOOD)],
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
            [heads_result("ada", LINED), heads_result("ben", GOOD)],
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
            [heads_result("u1", GOOD), heads_result("u2", BAD)],
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
            [heads_result("u1", GOOD)],
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
            [heads_result("u1", GOOD), heads_result("zoe", BAD)],
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
    page = Seen(write_class_pages(tmp_path, *results, **more))
    text = f"{page.text} {page.links}"
    assert [phrase for phrase in says if phrase not in text] == []
    assert [phrase for phrase in silent if phrase in text] == []


def test_a_page_to_show_in_class_names_no_student_and_no_rare_mistake(tmp_path):
    scale = BAD.model_copy(update={"diagnosis": (SCALE,), "lines": LINES[:1]})
    rare = dance_exercise(*SEEN, id_="mask", named=(VIEW,))
    results = [heads_result(student, scale, rare) for student in ("u1", "u2")]
    results += [heads_result("u3", scale), CRASHING]
    write_class_pages(tmp_path, *results, members=PEOPLE, labels=LABELS, left_out=["u9.json"])
    page = Seen(tmp_path / "without-names.html")
    for phrase in (
        "3 attempts You did not scale. One such line: q <b> 3 in 04 The dance",
        "In fewer than 3 attempts, and not shown: 1 misconception.",
    ):
        assert phrase in page.text
    names = ("u1", "Ada", "Ben", "Cat", "fay", "Tuesday", "u9", VIEW.title, "k 3", "students/")
    text = f"{page.text} {page.elements}"
    assert [name for name in names if name in text] == []
    assert "script" not in [tag for tag, _ in page.elements]


def test_every_text_of_a_student_or_an_exception_is_text(tmp_path):
    named = Diagnosed(id=HOSTILE, title=HOSTILE, hint=HOSTILE, alternatives=(HOSTILE,))
    decided = (Adjustment(rule="score", words=HOSTILE, before=1, after=0),)
    checks = (
        check_of_two_points("x", outcome="crashed", evidence=HOSTILE, hint=HOSTILE),
        check_of_two_points(HOSTILE, evidence=HOSTILE + "."),
        check_of_two_points(HOSTILE + "ok", 2),
    )
    bad = dance_exercise(
        *checks, id_=HOSTILE, named=(named, SCALE), note=HOSTILE, adjustments=decided
    )
    fields = dict.fromkeys(("assignment", "isolation", "device"), HOSTILE)
    result = heads_result(HOSTILE, bad, versions={HOSTILE: HOSTILE}, adjustments=decided, **fields)
    ungraded = [NotGraded(path=HOSTILE, reason=HOSTILE)]
    index = write_class_pages(tmp_path, result, left_out=[HOSTILE], not_graded=ungraded)
    for path in (index, tmp_path / "students" / f"{file_stems([HOSTILE])(HOSTILE)}.html"):
        page = Seen(path)
        assert " ".join(HOSTILE.split()) in page.text
        tags = [tag for tag, _ in page.elements]
        # the class page has a script
        assert (tags.count("img"), tags.count("script")) == (0, path == index)
        attributes = {name for _, attributes in page.elements for name in attributes}
        assert [name for name in attributes if name.startswith("on")] == []
        assert "49" not in page.text


@pytest.mark.parametrize("name", NAMES)
def test_the_class_page_leads_to_a_students_page_whatever_the_name(tmp_path, name):
    page = write_class_pages(tmp_path, heads_result(name, GOOD))
    (link,) = [link for link in Seen(page).links if link.startswith("students/")]
    assert re.fullmatch("[!-~]+", link)
    target = tmp_path / unquote(link)
    assert target.parent == tmp_path / "students"
    assert name in Seen(target).text or name != name.strip()


def test_no_two_names_share_a_page():
    names = [*NAMES, "a b", "a_b", "a.b", "../b", "a//b", "x" * 299, "Ada", "a.", "a", "nul"]
    names += ["e\u0301", "\u00e9"]
    names.append(file_stems(names)("Ada"))  # a student with the name of another one's file
    stem_of = file_stems(names)
    assert len({stem_of(name).casefold().rstrip(". ") for name in names}) == len(names)


def test_the_page_of_a_student_without_a_result_is_deleted_and_no_other_file(tmp_path):
    write_class_pages(tmp_path, heads_result("ada", GOOD), heads_result("ben", GOOD))
    folder = tmp_path / "students"
    (folder / "mine.html").write_text("<p>my own page</p>")
    write_class_pages(tmp_path, heads_result("ada", GOOD))
    assert sorted(path.name for path in folder.iterdir()) == ["ada.html", "mine.html"]


def test_pictures_are_below_their_attempt_and_on_no_other_page(tmp_path):
    half = torch.eye(2) * 0.5
    picture = compare_tables("weights, head 1", torch.eye(2), half, "query", "key", "weights")
    other = CRASHED.model_copy(update={"id": "other"})
    drawn = {("ada", "heads", exercise_id): [picture] for exercise_id in ("dance", "gone")}
    write_class_pages(
        tmp_path, heads_result("ada", BAD, other), heads_result("ben", BAD), drawn=drawn
    )
    names = ("students/ada.html", "students/ben.html", "index.html")
    pages = [Seen(tmp_path / name) for name in names]
    for page, count in zip(pages, (1, 0, 0), strict=True):
        assert [tag for tag, _ in page.elements].count("figure") == count
    text = pages[0].text
    assert "weights, head 1: the largest difference is 0.5" in text
    assert text.index("weights, head 1") < text.index("other")
    assert "course plot dance draws yours" in text
