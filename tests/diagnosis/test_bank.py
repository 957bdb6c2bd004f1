"""A mutant's code has empty lines in place of the lesson's main parts."""

import pytest

from manyheads.diagnosis.bank import without_main_parts

MAIN = 'if __name__ == "__main__":\n    print(half(2))\n'
FUNCTION = "def half(x):\n    return x / 2\n"


@pytest.mark.parametrize(
    ("text", "compiled_text"),
    [
        pytest.param(
            f"{MAIN}{FUNCTION}", f"\n\n{FUNCTION}", id="functions below it keep their lines"
        ),
        pytest.param(
            f"{MAIN}\x0c{FUNCTION}{MAIN}", f"\n\n\x0c{FUNCTION}\n\n", id="a form feed ends no line"
        ),
        pytest.param(
            f"{MAIN}else:\n    half = float\n", None, id="a statement with an else has an effect"
        ),
        pytest.param(f"if __name__:\n    {FUNCTION!r}\n", None, id="another condition may hold"),
        pytest.param(f"{MAIN}def half(:\n", None, id="a text that Python cannot parse"),
    ],
)
def test_main_parts_become_empty_lines(text: str, compiled_text: str | None) -> None:
    expected = text if compiled_text is None else compiled_text
    assert without_main_parts(text, text) == expected


def test_a_main_part_that_the_edit_changed_stays() -> None:
    edited = f"{FUNCTION}{MAIN}".replace("half(2)", "half(3)")
    assert without_main_parts(edited, f"{FUNCTION}{MAIN}") == edited
