"""The HTML pages of a class and of each student: their text, links and files."""

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


class ParsedPage(HTMLParser):
    """The text, elements and links of an HTML page."""

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
    """Return the result of a check of 2 points."""
    return make.check(id_, score, 2, outcome, title=f"does {id_}", evidence=evidence, hint=hint)


def write_class_pages(folder, *results, **options):
    """Write the pages of these results; options of the class view or of write_pages."""
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
RIGHT = dance_exercise(check_of_two_points("split", 2), check_of_two_points("merge", 2))
THREE_CHECKS = (
    check_of_two_points("split", evidence="head 0 holds channels 4…7"),
    check_of_two_points("merge", evidence="it is not x"),
    check_of_two_points("shape", 2),
)
TWO_MISTAKES = dance_exercise(*THREE_CHECKS, named=(VIEW, SCALE))
CRASHED = dance_exercise(
    check_of_two_points(
        "split", outcome="crashed", evidence="ended by SIGSEGV", hint="Try arange."
    ),
    check_of_two_points("merge"),
)
HALF_WRITTEN = dance_exercise(
    *(c.model_copy(update={"function": "f" if c.id == "split" else "h"}) for c in THREE_CHECKS),
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
WRONG_LINES = (
    ProvedLine(line=23, edit="q <b> → k"),
    ProvedLine(line=40, cell=3, line_in_cell=5, edit="a → b"),
)
WITH_WRONG_LINES = TWO_MISTAKES.model_copy(update={"lines": WRONG_LINES})
MISSING = dance_exercise(check_of_two_points("split", outcome="missing"), id_="mask")
CLASS_LIST = ClassList(
    Roster(
        (
            Student("u1", "Ada Lovelace", "Tuesday"),
            Student("u2", "Ben Bitdiddle", "Friday"),
            Student("u3", "Cat"),
        )
    )
)
LABELS = Labels({"heads": "Heads"}, {"dance": ("04", "The dance")}, "Many Heads")
HANDED_IN = HandedIn(source="clones", time=moment("2026-11-26T12:00Z"))


@pytest.mark.parametrize(
    "result",
    [RIGHT, TWO_MISTAKES, CRASHED, HALF_WRITTEN],
    ids=["right", "two misconceptions", "crashed", "half written"],
)
def test_a_students_page_has_all_text_of_the_terminal_report(tmp_path, result):
    write_class_pages(tmp_path, heads_result("ada", result))
    text = ParsedPage(tmp_path / "students" / "ada.html").text
    report = "\n".join(make.printed_lines(exercise_report(result), 400))
    fragments = re.split(r"\n|\s{3,}|hint: ", report)
    assert [fragment for fragment in fragments if fragment.strip() not in text] == []


@pytest.mark.parametrize(
    ("exercises", "phrases", "absent_phrase"),
    [
        pytest.param(
            [TWO_MISTAKES],
            ["does merge it is not x", "1 check passes: 2 / 2 does shape 2 / 2"],
            "→",
            id="evidence of a second check, and passed checks",
        ),
        pytest.param(
            [TWO_MISTAKES.model_copy(update={"note": "The .py counts."})],
            ["The .py counts."],
            "→",
            id="the note",
        ),
        pytest.param(
            [RIGHT],
            ["Graded on cpu, isolation namespaces, seed 3, torch 2.13.0."],
            "Next:",
            id="device, isolation and versions",
        ),
        pytest.param(
            [WITH_WRONG_LINES],
            ["(line 23, or line 5 of code cell 3)"],
            "→",
            id="the wrong line without the edit",
        ),
        pytest.param(
            [RIGHT.model_copy(update={"id": "a"}), TWO_MISTAKES, MISSING],
            [
                (
                    "Ada Lovelace u1 Many Heads, 27 November 2026 Next: course check dance, for "
                    "04 The dance."
                ),
                "Heads points 6 / 12 exercises done 1 of 3 handed in 2026-11-26 12:00 UTC",
                "– mask: not handed in 0 / 2 Graded on",
            ],
            "0–",
            id="name, course, day, next command, missing exercise",
        ),
    ],
)
def test_a_students_page_contains_these_phrases(tmp_path, exercises, phrases, absent_phrase):
    results = [heads_result("u1", *exercises, handed_in=HANDED_IN), heads_result("u2", RIGHT)]
    write_class_pages(tmp_path, *results, members=CLASS_LIST, labels=LABELS, day=date(2026, 11, 27))
    page = ParsedPage(tmp_path / "students" / "u1.html")
    assert [phrase for phrase in phrases if phrase not in page.text] == []
    assert absent_phrase not in page.text
    assert "Bitdiddle" not in page.text, "the page names another student"
    assert [link for link in page.links if not link.startswith("#")] == [], "links to other pages"


CRASHED_RESULT = heads_result("fay", CRASHED)
WEAK_ISOLATION = heads_result("ben", RIGHT, isolation="process")
CHANGED_POINTS = [ChangedPoints("ada", "heads", 31, 33.5), ChangedPoints(HOSTILE, "heads", 2, None)]


@pytest.mark.parametrize(
    ("results", "options", "phrases", "absent_phrase"),
    [
        pytest.param(
            [heads_result("ada", RIGHT)],
            {},
            ["Misconceptions None was found. Scores Submissions by their share", "#scores-1"],
            ["can be forged", "#lines-1", "In fewer than 3 attempts"],
            id="the required isolation level",
        ),
        pytest.param(
            [WEAK_ISOLATION],
            {},
            [
                "submissions 1 mean 4.00 of 4 median 4 of 4 all points 1 of 1",
                "Graded below the isolation level namespaces: 1 of 1 (process).",
            ],
            [],
            id="a weaker isolation level",
        ),
        pytest.param(
            [heads_result("ada", RIGHT), WEAK_ISOLATION],
            {},
            ["Graded below the isolation level namespaces: 1 of 2 (process)."],
            [],
            id="a weaker isolation level for one of two students",
        ),
        pytest.param(
            [heads_result("ada", RIGHT)],
            {"left_out": ["results/ben/heads.json is not a result."]},
            [
                (
                    "Not in this report: 1 file that cannot be read. results/ben/heads.json is "
                    "not a result."
                )
            ],
            [],
            id="a result file that cannot be read",
        ),
        pytest.param(
            [heads_result("ada", RIGHT)],
            {"not_graded": [NotGraded(path="ben/work.zip", reason="is an archive. Next: open it")]},
            [
                (
                    "Handed in, and not graded: 1. What, and why ben/work.zip: is an archive. "
                    "Next: open it"
                )
            ],
            [],
            id="a submitted file that is not graded",
        ),
        pytest.param(
            [heads_result("ada", RIGHT)],
            {"changed": CHANGED_POINTS},
            [
                (
                    "heads: points changed since the last run: 2. Whose ada: 31 → 33.5 "
                    f"{' '.join(HOSTILE.split())}: 2 → ?"
                )
            ],
            [],
            id="students with changed points",
        ),
        pytest.param(
            [heads_result("ada", WITH_WRONG_LINES), heads_result("ben", RIGHT)],
            {},
            [
                "ada | dance | line 23 | q <b> → k",
                "ada | dance | line 5 of code cell 3 | a → b",
                "#lines-1",
            ],
            [],
            id="edits of wrong lines",
        ),
        pytest.param(
            [heads_result("u1", RIGHT), heads_result("u2", TWO_MISTAKES)],
            {"members": CLASS_LIST},
            [
                "Ada Lovelace u1 | Tuesday | 4",
                "all Friday Tuesday",
                "In 1 of 1 attempts 1 attempt: 1 in dance Who Ben Bitdiddle u2",
            ],
            [],
            id="names and sections",
        ),
        pytest.param(
            [heads_result("u1", RIGHT)],
            {"members": CLASS_LIST},
            [
                "handed in nothing 2 of 3",
                "2 on the roster handed in nothing Ben Bitdiddle, Cat",
                "Ben Bitdiddle u2 | Friday | – | –",
                "Ben Bitdiddle u2 | –",
            ],
            ["students/u2.html"],
            id="students without a submission, in both tables",
        ),
        pytest.param(
            [heads_result("u1", RIGHT), heads_result("zoe", TWO_MISTAKES)],
            {"members": CLASS_LIST},
            [
                "submissions 2 1 of them count handed in nothing 2 of 3",
                "1 not on the roster, in no count, no mean and no histogram: zoe",
            ],
            ["You viewed straight."],
            id="a student who is not on the roster",
        ),
    ],
)
def test_the_class_page_contains_these_phrases(tmp_path, results, options, phrases, absent_phrase):
    page = ParsedPage(write_class_pages(tmp_path, *results, **options))
    text = f"{page.text} {page.links}"
    assert [phrase for phrase in phrases if phrase not in text] == []
    assert [phrase for phrase in absent_phrase if phrase in text] == []


def test_the_page_without_names_omits_students_and_rare_misconceptions(tmp_path):
    scale = TWO_MISTAKES.model_copy(update={"diagnosis": (SCALE,), "lines": WRONG_LINES[:1]})
    rare = dance_exercise(*THREE_CHECKS, id_="mask", named=(VIEW,))
    results = [heads_result(student, scale, rare) for student in ("u1", "u2")]
    results += [heads_result("u3", scale), CRASHED_RESULT]
    write_class_pages(tmp_path, *results, members=CLASS_LIST, labels=LABELS, left_out=["u9.json"])
    page = ParsedPage(tmp_path / "without-names.html")
    for phrase in (
        "3 attempts You did not scale. One such line: q <b> 3 in 04 The dance",
        "In fewer than 3 attempts, and not shown: 1 misconception.",
    ):
        assert phrase in page.text
    names = ("u1", "Ada", "Ben", "Cat", "fay", "Tuesday", "u9", VIEW.title, "k 3", "students/")
    text = f"{page.text} {page.elements}"
    assert [name for name in names if name in text] == []
    assert "script" not in [tag for tag, _ in page.elements]


def test_hostile_text_is_escaped_on_all_pages(tmp_path):
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
        page = ParsedPage(path)
        assert " ".join(HOSTILE.split()) in page.text
        tags = [tag for tag, _ in page.elements]
        # the class page has one script of its own
        assert (tags.count("img"), tags.count("script")) == (0, path == index)
        attributes = {name for _, attributes in page.elements for name in attributes}
        assert [name for name in attributes if name.startswith("on")] == []
        assert "49" not in page.text  # HOSTILE has {{ 7 * 7 }}, which a template would compute


@pytest.mark.parametrize("name", NAMES)
def test_the_class_page_links_to_the_page_of_a_student_with_any_name(tmp_path, name):
    page = write_class_pages(tmp_path, heads_result(name, RIGHT))
    (link,) = [link for link in ParsedPage(page).links if link.startswith("students/")]
    assert re.fullmatch("[!-~]+", link)
    target = tmp_path / unquote(link)
    assert target.parent == tmp_path / "students"
    assert name in ParsedPage(target).text or name != name.strip()


def test_page_file_names_are_distinct_for_all_names():
    names = [*NAMES, "a b", "a_b", "a.b", "../b", "a//b", "x" * 299, "Ada", "a.", "a", "nul"]
    names += ["e\u0301", "\u00e9"]
    names.append(file_stems(names)("Ada"))  # a student with the name of another one's file
    stem_of = file_stems(names)
    assert len({stem_of(name).casefold().rstrip(". ") for name in names}) == len(names)


def test_only_pages_of_students_without_a_result_are_deleted(tmp_path):
    write_class_pages(tmp_path, heads_result("ada", RIGHT), heads_result("ben", RIGHT))
    folder = tmp_path / "students"
    (folder / "mine.html").write_text("<p>my own page</p>")
    write_class_pages(tmp_path, heads_result("ada", RIGHT))
    assert sorted(path.name for path in folder.iterdir()) == ["ada.html", "mine.html"]


def test_pictures_appear_only_below_their_attempt(tmp_path):
    half_weights = torch.eye(2) * 0.5
    picture = compare_tables(
        "weights, head 1", torch.eye(2), half_weights, "query", "key", "weights"
    )
    other_exercise = CRASHED.model_copy(update={"id": "other"})
    drawn = {("ada", "heads", exercise_id): [picture] for exercise_id in ("dance", "gone")}
    write_class_pages(
        tmp_path,
        heads_result("ada", TWO_MISTAKES, other_exercise),
        heads_result("ben", TWO_MISTAKES),
        drawn=drawn,
    )
    names = ("students/ada.html", "students/ben.html", "index.html")
    pages = [ParsedPage(tmp_path / name) for name in names]
    for page, count in zip(pages, (1, 0, 0), strict=True):
        assert [tag for tag, _ in page.elements].count("figure") == count
    text = pages[0].text
    assert "weights, head 1: the largest difference is 0.5" in text
    assert text.index("weights, head 1") < text.index("other")
    assert "course plot dance draws yours" in text
