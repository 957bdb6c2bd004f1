"""Results as Markdown: text from a student never becomes markup, a link or a mention."""

import html
import re
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from manyheads.report.markdown import escape_text, one_line, results_section, text_block
from manyheads.result import Diagnosed, FunctionResult, Result
from tests import make

ATTACKS = [
    pytest.param("@teacher look", id="a mention"),
    pytest.param("@school/all look", id="a mention of a team"),
    pytest.param("see #1, GH-2 and school/class#3", id="references"),
    pytest.param("[click](https://example.org) https://example.org www.example.org", id="links"),
    pytest.param("![x](https://example.org/x.png)", id="an image"),
    pytest.param("<img src=https://example.org/x.png onerror=alert(1)>", id="an image tag"),
    pytest.param("</pre></details><h1>40 / 40</h1><details>", id="closing tags"),
    pytest.param("</PRE >", id="a closing tag in capitals, with a blank"),
    pytest.param(
        "<!-- many-heads: grade --> --><script>alert(1)</script>", id="comments and scripts"
    ),
    pytest.param("```\n~~~\n````\n# 40 / 40", id="fences"),
    pytest.param("\n\n\n# 40 / 40\n\n| ✓ | `all` | 40 / 40 |", id="a heading and a table"),
    pytest.param("a\r\n\r\n> quoted\x0b\x0c\u2028\u2029# x", id="every kind of line end"),
    pytest.param("&#64;teacher &lt;b&gt; &amp;", id="entities"),
    pytest.param("\x1b[31mred\x1b]8;;https://example.org\x07", id="a terminal's commands"),
    pytest.param("\u202e04 / 04\u2066", id="text that runs backwards"),
    pytest.param("::error::x ::set-output name=a::b ##[error]x", id="a runner's commands"),
    pytest.param("<a href='mailto:a@example.org'>a@example.org</a>", id="an address"),
    pytest.param(":tada: $$x$$ <kbd>x</kbd> a|b|c \\ `x`", id="signs of all kinds"),
    pytest.param("x" * 100_000, id="a very long line"),
    pytest.param("<" * 100_000, id="a line that grows when it is escaped"),
]
ALLOWED = set("h2 table thead tbody tr th td code details summary pre p strong".split())


class Page(HTMLParser):
    """Rendered Markdown: its tags, and its text inside and outside <pre> elements."""

    def __init__(self, markdown: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.inside, self.outside = "", ""
        self.feed(MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(markdown))
        self.close()
        assert self.open == [], "a tag is never closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes what it did not open"

    def handle_data(self, data: str) -> None:
        if "pre" in self.open:
            self.inside += data
        else:
            self.outside += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a comment")


def result_with_text(text: str) -> Result:
    """Return a result in which every text that a student could choose is this one."""
    checks = [make.check(id_, 0, 2, title=text, evidence=text, hint=text) for id_ in "cd"]
    misconception = Diagnosed(id="m", title=text, hint=text, alternatives=(text,))
    base_exercise = make.exercise("reshape_dance", *checks, diagnosis=(misconception,), note=text)
    function = FunctionResult(name=text, state="wrong", check=text, evidence=text)
    waiting_function = FunctionResult(name=f"{text}.", state="waiting", waits_for=text)
    exercise = base_exercise.model_copy(
        update={"functions": (function, waiting_function), "unseen": 1.0, "unseen_checks": (text,)}
    )
    return make.result(
        text, base_exercise, exercise, assignment="a", max_score=4, versions={"torch": text}
    )


CLEAN = Page(results_section("Course", [result_with_text("plain")]))


@pytest.mark.parametrize("text", ATTACKS)
def test_a_students_text_adds_no_markup_mention_or_link(
    text,
):
    section = results_section("Course", [result_with_text(text)])
    page = Page(section)
    assert set(page.tags) <= ALLOWED
    assert (page.tags, page.attributes, page.outside) == (
        CLEAN.tags,
        CLEAN.attributes,
        CLEAN.outside,
    )
    assert all(c.isprintable() or c in "\n\u200b" for c in page.inside)
    assert not re.search(r"@\w|#\w|://|www\.|GH-\d", html.unescape(section))


def test_zero_width_spaces_do_not_change_visible_text():
    page = Page(text_block("x @ W.T, a@b, see #1: 1 < 2 && 'q' > \"k\""))
    assert page.inside.replace("\u200b", "").strip() == "x @ W.T, a@b, see #1: 1 < 2 && 'q' > \"k\""


def test_an_exercise_that_is_not_started_has_a_row_without_details():
    empty = make.result("ada", make.exercise("fused_qkv", make.check("split", 0, 6, "missing")))
    section = results_section("Many Heads", [empty], {("averages", "fused_qkv")})
    assert "| · | fused\\_qkv | 0 / 6 |" in section
    assert "<details" not in section


@pytest.mark.parametrize("text", ATTACKS)
def test_a_hostile_course_title_becomes_one_line_of_plain_text(text):
    for line in (one_line(text), escape_text(text)):
        assert len(line) <= 400
        assert all(c.isprintable() or c == "\u200b" for c in line)
    page = Page(f"## {escape_text(text)}: 4 / 4")
    assert page.tags == ["h2"]
    assert page.outside.replace("\u200b", "").strip() == f"{one_line(text, 100).strip()}: 4 / 4"
