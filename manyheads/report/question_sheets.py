"""A student's questions as a page to print, as Moodle's GIFT, as QTI 2.1 for Canvas, and as rows of the key."""

from __future__ import annotations

import hashlib
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping

from ..student.question import LETTERS, Question
from ..student.sheet_questions import Sheet
from ..submission.source_text import printable
from .feedback_archives import zipped
from .labels import Labels
from .pages.environment import environment

KEY = (
    "student",
    "assignment",
    "question",
    "right",
    "exercise",
    "text",
    "code",
    *LETTERS,
    *(f"why {x}" for x in LETTERS),
)


def page(sheet: Sheet, labels: Labels) -> str:
    """Return the student's page, which holds no answer."""
    return environment(labels).get_template("questions.html.j2").render(sheet=sheet, shown=printable, letters=LETTERS)


def key_rows(sheet: Sheet) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the key, as KEY names their cells: what is right, and why each other option is wrong."""
    for number, each in enumerate(sheet.asked, 1):
        question, options = each.question, each.question.options
        why = [f"{o.cause} {title}".strip() for o, title in zip(options, each.named, strict=True)]
        right, texts = LETTERS[question.right], (question.text, question.code, *(o.text for o in options), *why)
        yield sheet.student, sheet.assignment.id, str(number), right, each.exercise, *map(printable, texts)


# GIFT, as Moodle reads it (docs.moodle.org, GIFT format). Its control characters are escaped; `[plain]` before each text
# keeps one that begins with [html] from being anything else.

_CONTROL = re.compile(r"([~=#{}:\\])")


def gift(sheet: Sheet) -> str:
    """Return the questions, with their answers, for Moodle's question bank."""
    found = []
    for number, each in enumerate(sheet.asked, 1):
        question = each.question
        lines = [_plain(text) for text in (question.code, question.text) if text]
        head = f"::{_plain(_titled(sheet, number))}::[plain]" + "\\n".join(lines) + " {"
        options = [
            f"{'=' if place == question.right else '~'}[plain]{_plain(o.text)}#[plain]{_plain(o.cause)}"
            for place, o in enumerate(question.options)
        ]
        found.append("\n".join([head, *options, "}"]))
    return "\n\n".join(found) + "\n"


def _plain(text: str) -> str:
    return _CONTROL.sub(r"\\\1", printable(text))


def _titled(sheet: Sheet, number: int | None = None) -> str:
    return " ".join(map(str, filter(None, (printable(sheet.student), sheet.assignment.id, number))))


# QTI 2.1 (imsglobal.org/question), by hand: there is no library that writes it and is looked after. Canvas (canvas-lms,
# gems/plugins/qti_exporter) reads the text of a question from a div or a prompt, never from a pre alone; makes a question of
# its own of a visible section's title; and takes what has the same identifier for the same, also in another package.

_QTI, _PACKAGE = "http://www.imsglobal.org/xsd/imsqti_v2p1", "http://www.imsglobal.org/xsd/imscp_v1p1"
_MATCH = "http://www.imsglobal.org/question/qti_v2p1/rptemplates/match_correct"


def qti(sheet: Sheet) -> bytes:
    """Return a package of items and one test, with their answers, for Canvas' import."""
    own = hashlib.sha256(f"{sheet.student}\n{sheet.assignment.id}".encode()).hexdigest()[:16]
    names = [f"question_{own}_{number}" for number in range(1, len(sheet.asked) + 1)]
    parts = {
        name: _item(name, _titled(sheet, number), each.question)
        for number, (name, each) in enumerate(zip(names, sheet.asked, strict=True), 1)
    }
    test = ET.Element("assessmentTest", xmlns=_QTI, identifier=f"test_{own}", title=_titled(sheet))
    part = ET.SubElement(test, "testPart", identifier="part", navigationMode="nonlinear", submissionMode="simultaneous")
    section = ET.SubElement(part, "assessmentSection", identifier="section", title="Questions", visible="false")
    for name in names:
        ET.SubElement(section, "assessmentItemRef", identifier=name, href=f"{name}.xml")
    parts["test"] = test
    files = {f"{name}.xml": _xml(each) for name, each in parts.items()}
    return zipped({**files, "imsmanifest.xml": _xml(_manifest(parts))})


def _item(name: str, title: str, question: Question) -> ET.Element:
    item = ET.Element(
        "assessmentItem", xmlns=_QTI, identifier=name, title=title, adaptive="false", timeDependent="false"
    )
    declared = ET.SubElement(
        item, "responseDeclaration", identifier="RESPONSE", cardinality="single", baseType="identifier"
    )
    ET.SubElement(ET.SubElement(declared, "correctResponse"), "value").text = LETTERS[question.right]
    ET.SubElement(item, "outcomeDeclaration", identifier="SCORE", cardinality="single", baseType="float")
    body = ET.SubElement(item, "itemBody")
    if question.code:
        ET.SubElement(ET.SubElement(body, "div"), "pre").text = printable(question.code)
    choice = ET.SubElement(body, "choiceInteraction", responseIdentifier="RESPONSE", shuffle="false", maxChoices="1")
    ET.SubElement(choice, "prompt").text = printable(question.text)
    for letter, option in zip(LETTERS, question.options, strict=True):
        ET.SubElement(choice, "simpleChoice", identifier=letter).text = printable(option.text)
    ET.SubElement(item, "responseProcessing", template=_MATCH)
    return item


def _manifest(parts: Mapping[str, ET.Element]) -> ET.Element:
    manifest = ET.Element("manifest", xmlns=_PACKAGE, identifier="manifest")
    metadata = ET.SubElement(manifest, "metadata")
    ET.SubElement(metadata, "schema").text = "QTIv2.1 Package"
    ET.SubElement(metadata, "schemaversion").text = "1.0.0"
    ET.SubElement(manifest, "organizations")
    resources = ET.SubElement(manifest, "resources")
    for name in parts:
        kind = f"imsqti_{'test' if name == 'test' else 'item'}_xmlv2p1"
        resource = ET.SubElement(resources, "resource", identifier=f"of_{name}", type=kind, href=f"{name}.xml")
        ET.SubElement(resource, "file", href=f"{name}.xml")
        for other in parts if name == "test" else ():
            if other != name:
                ET.SubElement(resource, "dependency", identifierref=f"of_{other}")
    return manifest


def _xml(root: ET.Element) -> bytes:
    ET.indent(root)
    return f"{ET.tostring(root, encoding='unicode', xml_declaration=False)}\n".encode()
