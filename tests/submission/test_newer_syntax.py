"""Recognising syntax of newer Python versions, compared with the error messages of ruff."""

import re
import sys
import time

import pytest

from manyheads.submission import Source
from manyheads.submission.newer_python import KINDS, PYTHON, newer_syntax, note_on_newer_syntax
from tests.make import run

OLDEST, NEWEST = "py311", "py315"
NEWER_SYNTAX = {
    "a function's type parameter": ("def f[T](x):\n    return x\n", "3.12"),
    "a class's type parameters": ("class A[T: int, *Ts, **P]:\n    pass\n", "3.12"),
    "a type alias": ("type X = int\n", "3.12"),
    "quotes of a call": ('x = f"{", ".join(["a"])}"\n', "3.12"),
    "quotes of a key": ("d = {}\nx = f'{d['k']!r:>{9}} {{}}'\n", "3.12"),
    "a backslash": ('x = f"{"\\n".join("ab")}"\n', "3.12"),
    "a backslash in long quotes": ("x = f'''{\"\\n\".join(\"ab\")}'''\n", "3.12"),
    "a comment": ('a = 1\nx = f"{a # no\n}"\n', "3.12"),
    "exceptions": ("try:\n    pass\nexcept ValueError, KeyError:\n    pass\n", "3.14"),
    "a t-string": ('a = 1\nx = t"{a}"\n', "3.14"),
    "a lazy import": ("lazy import os\n", "3.15"),
    "an unpacked list": ("x = [*a for a in []]\n", "3.15"),
    "an unpacked mapping": ("x = {**a for a in []}\n", "3.15"),
}
# Invalid in every version of Python; some texts use newer syntax besides the mistake.
INVALID_PYTHON = {
    "a colon": "def f(x)\n    return x\n",
    "a bracket": "def f(x:\n    return x\n",
    "no name in brackets": "def f[3](x):\n    return x\n",
    "empty brackets": "def f[](x):\n    return x\n",
    "a brace that stays open": 'x = f"{a"\n',
    "a brace that opens last": 'x = f"{", "\n',
    "a bracket between braces": 'd = {}\nx = f"{d["k"}"\n',
    "nothing between braces": 'x = f"{}"\n',
    "two names between braces": 'x = f"{a b}"\n',
    "Python 2": 'print "x"\n',
    "an exception with a name": "try:\n    pass\nexcept ValueError, KeyError as e:\n    pass\n",
    "an item before a star": "x = [1, *a for a in []]\n",
    "a type alone": "type X\n",
    "type parameters, and a bracket": "def f[T](x):\n    return (\n",
    "quotes, and a bracket": 'd = {}\nx = f"{d["k"]}"\ny = (\n',
}


@pytest.fixture(scope="module")
def ruff_messages(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], list[str]]:
    """Return the syntax errors that ruff reports, by name of the text and Python version."""
    folder = tmp_path_factory.mktemp("ruff")
    texts = {**INVALID_PYTHON, **{name: text for name, (text, _) in NEWER_SYNTAX.items()}}
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    options = "ruff check --isolated --no-cache --select F822 --output-format concise".split()
    messages = {(name, version): [] for name in texts for version in (OLDEST, NEWEST)}
    for version in (OLDEST, NEWEST):
        output = run(sys.executable, "-m", *options, "--target-version", version, cwd=folder).stdout
        for name, message in re.findall(r"(?m)^(.*)\.py:\d+:\d+: invalid-syntax: (.*)", output):
            messages[name, version].append(message)
    return messages


def is_newer_than_this_python(version: str) -> bool:
    """Return whether a version such as "3.14" is newer than the Python that runs the tests."""
    return tuple(map(int, version.split("."))) > sys.version_info[:2]


@pytest.mark.parametrize("name", NEWER_SYNTAX)
def test_ruff_names_the_same_python_version_for_each_example(ruff_messages, name):
    _, since = NEWER_SYNTAX[name]
    messages = " ".join(ruff_messages[name, OLDEST])
    versions = re.findall(r"syntax was added in Python ([\d.]+)", messages)
    assert {*versions} == {since}
    assert ruff_messages[name, NEWEST] == []


@pytest.mark.parametrize("name", NEWER_SYNTAX)
def test_syntax_newer_than_this_python_is_recognised_with_its_version(name):
    text, since = NEWER_SYNTAX[name]
    expected = [since] if is_newer_than_this_python(since) else []
    assert [feature.since for feature in newer_syntax(Source("", text))] == expected


@pytest.mark.parametrize("name", INVALID_PYTHON)
def test_invalid_python_is_not_called_newer_syntax(ruff_messages, name):
    assert ruff_messages[name, NEWEST]
    assert newer_syntax(Source("", INVALID_PYTHON[name])) == ()
    assert note_on_newer_syntax(Source("", INVALID_PYTHON[name])) == ""


@pytest.mark.parametrize(
    "text", ["x = f'{1}'\n", "def f(x):\n    return x\n", "", "# nothing\n", "type = 1\nlazy = 2\n"]
)
def test_valid_python_is_not_called_newer_syntax(text):
    assert newer_syntax(Source("", text)) == ()


@pytest.mark.skipif(not is_newer_than_this_python("3.12"), reason="this Python reads it")
def test_the_note_on_newer_syntax_says_what_to_change():
    assert note_on_newer_syntax(Source("", "type X = int\ndef f[T](x): return x\n")) == (
        "Parameters in square brackets behind a name came with Python 3.12, and attempts are run "
        f"with {PYTHON} here: leave them out. The statement `type` came with Python 3.12, and "
        f"attempts are run with {PYTHON} here: leave out the word."
    )


def test_every_version_with_newer_syntax_has_an_example():
    assert {feature.since for feature in KINDS} == {since for _, since in NEWER_SYNTAX.values()}


@pytest.mark.parametrize(
    "piece",
    [
        'f"{',
        'f"{a}',
        'f"""{a}',
        'f"""{"a" ',
        "f'{'",
        'f"{{',
        "def f[",
        "[*a ",
        "except a,",
        "a,",
        "type ",
        "{{a}}",
    ],
)
def test_recognising_newer_syntax_is_fast_for_every_text(piece):
    start = time.process_time()
    newer_syntax(Source("", (piece * 200_000)[:190_000]))
    newer_syntax(Source("", 'f"""{except ' + (piece * 200_000)[:190_000]))
    assert time.process_time() - start < 5
