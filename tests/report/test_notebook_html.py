"""A notebook shows the terminal's words, escaped, with hints folded away."""

import html
import re

from rich.console import Group
from rich.text import Text

from manyheads.report.notebook_html import checked, shown
from manyheads.result import Diagnosed, ExerciseResult, FunctionResult
from tests import make

CHECK = make.check("view", 0, 2, title="splits <b>channels</b>", evidence="a & b", hint="look <i>here</i>")
WRONG = Diagnosed(id="wrong_view", title="You viewed straight.", hint="view <never> moves", alternatives=())


def words(text: str, *, folded: bool) -> str:
    """The text of what is folded away, or of the rest."""
    parts = re.split(r"<details.*?</details>", text) if not folded else re.findall(r"<details.*?</details>", text)
    return html.unescape(re.sub(r"<[^>]+>", "", "".join(parts)))


def result(*diagnosis: Diagnosed) -> ExerciseResult:
    return make.exercise("reshape_dance", CHECK, diagnosis=diagnosis)


def test_a_hint_is_folded_away_and_nothing_is_markup() -> None:
    made = shown(checked(result(WRONG)))
    assert set(re.findall(r"<(\w+)", made.html)) == {"div", "pre", "span", "details", "summary"}
    assert words(made.html, folded=True) == "hintview <never> moves"
    seen = words(made.html, folded=False)
    assert made.html.index("You viewed straight.") < made.html.index("<details")
    assert "splits <b>channels</b>" in seen
    assert "a & b" in seen
    assert "moves" not in seen
    assert "<details" not in checked(result()).html, "without a misconception there is no hint"
    lines = made.text.splitlines()  # what a terminal shows
    assert lines[0].startswith("✗ reshape_dance")
    assert "  hint: view <never> moves" in lines


def test_a_sentence_goes_on_in_the_next_line_and_a_report_does_not() -> None:
    long = "word " * 60
    assert "white-space:pre-wrap" in shown(Text(long)).html
    assert "white-space:pre-wrap" not in shown(Group(Text("a"))).html
    assert shown(Text(long)).text == long.strip()


def test_a_hint_says_which_function_it_is_about_and_stands_below_it() -> None:
    functions = tuple(FunctionResult(name=name, state="wrong", check=CHECK.title) for name in ("split", "merge"))
    named = tuple(WRONG.model_copy(update={"function": name, "hint": f"see {name}"}) for name in ("split", "merge"))
    made = checked(result(*named).model_copy(update={"functions": functions}))
    assert words(made.html, folded=True) == "hint for splitsee splithint for mergesee merge"
    order = ["split: You", "hint for split", "merge: You", "hint for merge"]
    assert sorted(order, key=made.html.index) == order


def test_every_colour_is_dark_enough_on_white() -> None:
    from manyheads.report.notebook_html import _THEME

    def light(colour: tuple[int, int, int]) -> float:
        parts = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    colours = [_THEME.foreground_color, *(_THEME.ansi_colors[i] for i in range(16))]
    assert min(1.05 / (light(tuple(colour)) + 0.05) for colour in colours) >= 4.5  # type: ignore[arg-type]
