"""A sheet as a page, as GIFT and as QTI: what a student's code says is text there, and never markup or control."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
import zipfile
from dataclasses import replace

import pytest

from manyheads.course import Course
from manyheads.report.labels import labels_of
from manyheads.report.question_sheets import KEY, gift, key_rows, page, qti
from manyheads.student.question import Option, Question
from manyheads.student.sheet_questions import Asked, Sheet

HOSTILE = '<script>alert("1")</script> & ]]> {=a ~b #c} $x$ \\n \\ :: \x1b[31m "quoted" \ud800 \u202e'
SEEN = HOSTILE.replace("\x1b", " ").replace("\ud800", " ").replace("\u202e", " ")
WRONG = ("[html]<b>no</b>", "%100%mine", "// nothing")
QTI = "{http://www.imsglobal.org/xsd/imsqti_v2p1}"
PACKAGE = "{http://www.imsglobal.org/xsd/imscp_v1p1}"


def question(right: str = HOSTILE) -> Question:
    options = [Option(right, "It is so.", shows="yes"), *(Option(text, f"Not {text}.", shows="no") for text in WRONG)]
    return Question("made_up", f"What is {HOSTILE}?", (options[1], options[0], *options[2:]), "yes", code=HOSTILE)


@pytest.fixture
def sheet(tiny: Course) -> Sheet:
    named = ("You did it the other way round.", "", "", "")
    asked = (Asked("running_mean", question(), named), Asked("running_mean", question("plain"), named))
    return Sheet("ada", tiny.assignments[0], asked)


def gift_questions(text: str) -> list[tuple[str, str, list[tuple[str, str, str]]]]:
    """Title, text and (sign, text, feedback) of each question, read as Moodle does: escapes first, then the form."""
    kept = {f"\\{sign}": f"\0{place}\0" for place, sign in enumerate("\\~=#{}:")}
    for escape, code in kept.items():
        text = text.replace(escape, code)

    def plain(part: str) -> str:
        part = part.strip().replace("\\n", "\n")
        assert part.startswith("[plain]")
        for place, sign in enumerate("\\~=#{}:"):
            part = part.replace(f"\0{place}\0", sign)
        return part.removeprefix("[plain]")

    found = []
    for each in re.split(r"\n\s*\n", text.strip()):
        match = re.fullmatch(r"::(.*?)::(.*?)\{(.*)\}", each, re.DOTALL)
        assert match is not None, each
        options = re.findall(r"([=~])([^=~#]*)#([^=~#]*)", match[3])
        found.append((match[1], plain(match[2]), [(sign, plain(a), plain(b)) for sign, a, b in options]))
    return found


def test_gift_read_back_has_the_same_texts_and_one_right_option(sheet: Sheet) -> None:
    first, second = gift_questions(gift(sheet))
    assert first[:2] == ("ada averages 1", f"{SEEN}\nWhat is {SEEN}?")
    assert [(sign, text) for sign, text, _ in first[2]] == [
        ("~", WRONG[0]), ("=", SEEN.rstrip()), ("~", WRONG[1]), ("~", WRONG[2])
    ]  # fmt: skip
    assert [feedback for _, _, feedback in second[2]][1] == "It is so."


def test_a_qti_package_lists_its_files_and_each_item_has_one_right_answer(sheet: Sheet) -> None:
    with zipfile.ZipFile(io.BytesIO(qti(sheet))) as archive:
        files = {name: ET.fromstring(archive.read(name)) for name in archive.namelist()}
    manifest = files.pop("imsmanifest.xml")
    resources = manifest.findall(f"{PACKAGE}resources/{PACKAGE}resource")
    assert {r.get("href") for r in resources} == {r.find(f"{PACKAGE}file").get("href") for r in resources} == set(files)  # type: ignore[union-attr]
    assert {r.get("type") for r in resources} == {"imsqti_item_xmlv2p1", "imsqti_test_xmlv2p1"}
    ids = {r.get("identifier") for r in resources}
    assert {d.get("identifierref") for d in manifest.iter(f"{PACKAGE}dependency")} <= ids
    test = files.pop("test.xml")
    assert [ref.get("href") for ref in test.iter(f"{QTI}assessmentItemRef")] == sorted(files)
    for item in files.values():
        assert item.tag == f"{QTI}assessmentItem"
        (right,) = item.iter(f"{QTI}correctResponse")
        assert [value.text for value in right] == ["B"]
        choices = {str(c.get("identifier")): c.text for c in item.iter(f"{QTI}simpleChoice")}
        assert (sorted(choices), choices["A"]) == (list("ABCD"), WRONG[0])
    first = files[min(files)]
    assert first.find(f".//{QTI}prompt").text == f"What is {SEEN}?"  # type: ignore[union-attr]
    assert first.find(f"{QTI}itemBody/{QTI}div/{QTI}pre").text == SEEN  # type: ignore[union-attr]
    assert [section.get("visible") for section in test.iter(f"{QTI}assessmentSection")] == ["false"]


def test_packages_of_two_students_share_no_identifier_by_which_canvas_would_take_one_for_the_other(
    sheet: Sheet,
) -> None:
    def identifiers(one: Sheet) -> set[str]:
        with zipfile.ZipFile(io.BytesIO(qti(one))) as archive:
            roots = [ET.fromstring(archive.read(name)) for name in archive.namelist()]
        return {root.get("identifier", "") for root in roots if root.tag.startswith(QTI)}

    ada, ben = identifiers(sheet), identifiers(replace(sheet, student="ben"))
    assert (len(ada), len(ben), ada & ben) == (3, 3, set())
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", each) for each in ada)


def test_the_page_shows_everything_as_text_and_no_answer(tiny: Course, sheet: Sheet) -> None:
    text = page(sheet, labels_of(tiny))
    assert "<script" not in text.partition("<body>")[2]
    assert "&lt;script&gt;" in text
    assert "[html]&lt;b&gt;no&lt;/b&gt;" in text
    assert not {"\x1b", "\ud800", "\u202e"} & set(text)
    assert not re.search(r"It is so|Not |other way round", text)
    assert text.count('<ol type="A">') == 2


def test_the_key_says_what_is_right_and_why_each_other_option_is_wrong(sheet: Sheet) -> None:
    rows = [dict(zip(KEY, row, strict=True)) for row in key_rows(sheet)]
    assert [(row["student"], row["assignment"], row["question"], row["right"]) for row in rows] == [
        ("ada", "averages", "1", "B"), ("ada", "averages", "2", "B")
    ]  # fmt: skip
    assert rows[0]["why A"] == "Not [html]<b>no</b>. You did it the other way round."
