"""The table of newer syntax agrees with what ruff knows of each version of Python."""

import re
import sys
import time

import pytest

from manyheads.submission import Source
from manyheads.submission.newer_python import KINDS, PYTHON, newer_syntax, note_on_newer_syntax
from tests.make import run

OLDEST, NEWEST = "py311", "py315"
NEWER = {
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
# No Python of any version; what stands behind | is newer, and is not all that is wrong.
NO_PYTHON = {
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
    """What ruff says of each text that a version of Python cannot read."""
    folder = tmp_path_factory.mktemp("ruff")
    texts = {**NO_PYTHON, **{name: text for name, (text, _) in NEWER.items()}}
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    options = "ruff check --isolated --no-cache --select F822 --output-format concise".split()
    messages = {(name, version): [] for name in texts for version in (OLDEST, NEWEST)}
    for version in (OLDEST, NEWEST):
        said = run(sys.executable, "-m", *options, "--target-version", version, cwd=folder).stdout
        for name, message in re.findall(r"(?m)^(.*)\.py:\d+:\d+: invalid-syntax: (.*)", said):
            messages[name, version].append(message)
    return messages


def is_newer(version: str) -> bool:
    return tuple(map(int, version.split("."))) > sys.version_info[:2]


@pytest.mark.parametrize("name", NEWER)
def test_newer_syntax_is_known_by_the_version_it_came_with(ruff_messages, name):
    text, since = NEWER[name]
    added = re.findall(
        r"syntax was added in Python ([\d.]+)", " ".join(ruff_messages[name, OLDEST])
    )
    assert {*added} == {since}
    assert ruff_messages[name, NEWEST] == []
    features = newer_syntax(Source("", text))
    assert [feature.since for feature in features] == [since] * is_newer(since)


@pytest.mark.parametrize("name", NO_PYTHON)
def test_of_what_is_no_python_nothing_is_called_newer(ruff_messages, name):
    assert ruff_messages[name, NEWEST]
    assert newer_syntax(Source("", NO_PYTHON[name])) == ()
    assert note_on_newer_syntax(Source("", NO_PYTHON[name])) == ""


@pytest.mark.parametrize(
    "text", ["x = f'{1}'\n", "def f(x):\n    return x\n", "", "# nothing\n", "type = 1\nlazy = 2\n"]
)
def test_of_what_this_python_reads_nothing_is_called_newer(text):
    assert newer_syntax(Source("", text)) == ()


@pytest.mark.skipif(not is_newer("3.12"), reason="this Python reads it")
def test_it_is_said_what_to_write_instead():
    assert note_on_newer_syntax(Source("", "type X = int\ndef f[T](x): return x\n")) == (
        "Parameters in square brackets behind a name came with Python 3.12, and attempts are run "
        f"with {PYTHON} here: leave them out. The statement `type` came with Python 3.12, and "
        f"attempts are run with {PYTHON} here: leave out the word."
    )


def test_every_kind_has_a_row():
    assert {feature.since for feature in KINDS} == {since for _, since in NEWER.values()}


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
def test_no_text_keeps_the_judge_busy(piece):
    start = time.process_time()
    newer_syntax(Source("", (piece * 200_000)[:190_000]))
    newer_syntax(Source("", 'f"""{except ' + (piece * 200_000)[:190_000]))
    assert time.process_time() - start < 5
