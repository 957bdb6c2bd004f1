"""An instructor's comment above the automatic one, as nbgrader's feedback page renders the two."""

import pytest
from nbconvert.filters.markdown_mistune import markdown2html_mistune

from manyheads.platforms.nbgrader_feedback import one_above_the_other

RAISED = "    ✗ mean: not right yet\n    has the values: raised ValueError: <img src=x> [a](javascript:b) 2 < 3\n    (isolation: none)"


@pytest.mark.parametrize(
    "manual", ["See me.", "- Read the hint.\n- See me.", "1. See me.", "> See me.", "<div>", "<!-- later"]
)
def test_below_any_comment_by_hand_what_a_students_code_raised_is_text(manual: str) -> None:
    page = markdown2html_mistune(one_above_the_other(manual, RAISED))
    assert "raised ValueError: &lt;img src=x&gt; [a](javascript:b) 2 &lt; 3\n" in page
    assert "<img" not in page
    assert "href" not in page


def test_a_comment_by_hand_is_markdown_and_stands_first() -> None:
    page = markdown2html_mistune(one_above_the_other("See me **today**.", RAISED))
    assert page.index("<strong>today</strong>") < page.index("✗ mean")
