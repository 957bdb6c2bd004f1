"""The packages stay within the limits of tests/house.toml; each metric counts what it should."""

import re
from pathlib import Path

import pytest

from tools import readability
from tools.readability import LIMITS, METRICS, ROOT, CodeFile

PACKAGES = readability.packages(ROOT)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_is_within_its_limits(package: str) -> None:
    counts = readability.count(ROOT, package)
    sentences = [*readability.complaints(counts, readability.read_limits(LIMITS))]
    if sentences:
        pytest.fail("\n".join(sentences), pytrace=False)


def test_the_table_has_the_packages_that_there_are() -> None:
    assert sorted(readability.read_limits(LIMITS)) == sorted(PACKAGES)


NESTED = "sizes = [len([y for y in x]) for x in rows]"
DOUBLE = "size = (1 if a else 2) + (3 if b else 4)"
FSTRING = 'text = f"{a + b} and {c!r:>{width}}"'


@pytest.mark.parametrize(
    ("metric", "text", "number"),
    [
        pytest.param("tokens", "", 0, id="nothing"),
        pytest.param("tokens", "size = 1\n", 3, id="an assignment"),
        pytest.param("tokens", "size = 1  # one\n\n# two\n", 3, id="comments and empty lines"),
        pytest.param("tokens", '"""A module."""\nsize = 1\n', 3, id="a docstring"),
        pytest.param("tokens", 'def f():\n    """A."""\n    return 1\n', 7, id="of a function"),
        pytest.param("tokens", 'size = """a\nb"""\n', 3, id="a text that is no docstring"),
        pytest.param("tokens", FSTRING, 3, id="a formatted string, in every Python"),
        pytest.param("uninformative_names", "found = 1\n", 1, id="a variable"),
        pytest.param("uninformative_names", "def told(each, *, size): ...\n", 2, id="a parameter"),
        pytest.param(
            "uninformative_names", "class Found: ...\nclass other: ...\n", 1, id="a class"
        ),
        pytest.param("uninformative_names", "_found = other_ = 1\n", 2, id="with underscores"),
        pytest.param("uninformative_names", "found_path = print(found)\n", 0, id="only used"),
        pytest.param("uninformative_names", "[each for each in rows]\n", 1, id="comprehended"),
        pytest.param(
            "suspect_sentences", '"""Return what is told of it."""\n', 1, id="a docstring"
        ),
        pytest.param(
            "suspect_sentences", '"""A good line. Whoever is late waits."""\n', 1, id="2nd"
        ),
        pytest.param("suspect_sentences", '"""What is."""\n', 0, id="too short"),
        pytest.param("suspect_sentences", "# Where there is none, wait\n", 1, id="a comment"),
        pytest.param(
            "suspect_sentences", "# A file that is read\n# whoever asks\n", 1, id="goes on"
        ),
        pytest.param(
            "suspect_sentences", "# The path of the file\n# Of the course\n", 0, id="within"
        ),
        pytest.param("suspect_sentences", '"""Return the path of the file."""\n', 0, id="clear"),
        pytest.param("nested_comprehensions", NESTED, 1, id="nested"),
        pytest.param(
            "nested_comprehensions", "a = [x for x in y]\nb = {x for x in y}", 0, id="two"
        ),
        pytest.param("nested_comprehensions", "s = {x: [y for y in x] for x in z}", 1, id="a dict"),
        pytest.param("double_conditionals", DOUBLE, 1, id="beside each other"),
        pytest.param("double_conditionals", "a = 1 if b else 2 if c else 3", 1, id="in each other"),
        pytest.param(
            "double_conditionals", "a = 1 if b else 2\nc = 3 if d else 4", 0, id="2 apart"
        ),
        pytest.param("double_conditionals", f"def f():\n    {DOUBLE}\n", 1, id="once, in a body"),
        pytest.param(
            "double_conditionals", "if (1 if a else 2):\n    b = 1 if c else 2\n", 0, id="a heading"
        ),
        pytest.param("long_lines", f"a = '{'x' * 94}'\n", 0, id="100 columns"),
        pytest.param("long_lines", f"a = '{'x' * 95}'\n", 1, id="101 columns"),
        pytest.param("long_lines", f"# {'x' * 99}\n", 1, id="a long comment"),
        pytest.param("long_summaries", '"""One line."""\n', 0, id="one line"),
        pytest.param("long_summaries", '"""One line.\n\nTwo\nlines.\n"""\n', 0, id="long below"),
        pytest.param("long_summaries", '"""Two\nlines.\n"""\n', 1, id="two lines"),
        pytest.param("fmt_skips", "a = [1,\n 2]  # fmt: skip\n", 1, id="skipped"),
        pytest.param("fmt_skips", "a = 1  # ones  # fmt:skip\n", 1, id="behind a remark"),
        pytest.param("fmt_skips", "# fmt: off\na = [1,\n 2]\n# fmt: on\n", 1, id="off"),
        pytest.param("fmt_skips", "a = '# fmt: skip'\n", 0, id="in a string"),
    ],
)
def test_a_metric_counts(metric: str, text: str, number: int) -> None:
    assert len([*METRICS[metric].find(CodeFile(text))]) == number


NONE = dict.fromkeys(METRICS, 0)


@pytest.mark.parametrize(
    ("metric", "number", "limit", "is_allowed"),
    [
        ("long_lines", 7, 7, True),
        ("long_lines", 8, 7, False),
        ("tokens", 1020, 1000, True),  # two percent
        ("tokens", 1021, 1000, False),
    ],
)
def test_a_count_may_be_at_its_limit(
    metric: str, number: int, limit: int, is_allowed: bool
) -> None:
    counts, limits = {"tests": NONE | {metric: number}}, {"tests": NONE | {metric: limit}}
    sentences = [*readability.complaints(counts, limits)]
    assert len(sentences) == (not is_allowed)
    for sentence in sentences:
        assert sentence.startswith(f"tests has {number} {METRICS[metric].title}, and at most")
        assert f"at most {limit} " in sentence


def test_a_complaint_says_what_to_do() -> None:
    counts = {"manyheads/judge": NONE | {"long_lines": 3, "tokens": 5}}
    limits = {"manyheads/judge": NONE | {"long_lines": 1, "tokens": 4}}
    assert [*readability.complaints(counts, limits)] == [
        "manyheads/judge has 5 tokens of code, and at most 4 and 2% more are allowed: take code "
        "out, or raise the limit by hand and give the reason in the commit.",
        "manyheads/judge has 3 lines over 100 columns, and at most 1 are allowed: break them; "
        "python -m tools.readability find long_lines manyheads/judge lists them.",
    ]
    assert [*readability.complaints(counts, {})] == [
        "manyheads/judge has no limits in tests/house.toml: "
        "python -m tools.readability update adds them."
    ]


def test_an_update_only_lowers() -> None:
    counts = {"b": NONE | {"tokens": 50, "long_lines": 3}, "a": NONE | {"tokens": 7}}
    limits = {"b": NONE | {"tokens": 60, "long_lines": 2}, "gone": NONE}
    lowered = readability.lower_limits(counts, limits)
    assert lowered == {
        "a": NONE | {"tokens": 7},
        "b": NONE | {"tokens": 50, "long_lines": 2},
    }
    assert readability.lower_limits(counts, lowered) == lowered


def test_the_table_is_read_as_it_is_written(tmp_path: Path) -> None:
    limits = {"manyheads": NONE | {"tokens": 7}, "grader/checks": NONE}
    path = tmp_path / "house.toml"
    path.write_text(readability.table_of(limits), encoding="utf-8")
    assert readability.read_limits(path) == limits
    assert LIMITS.read_text(encoding="utf-8") == readability.table_of(
        readability.read_limits(LIMITS)
    )


@pytest.mark.parametrize(
    ("path", "package"),
    [
        ("manyheads/files.py", "manyheads"),
        ("manyheads/box/worker/wire.py", "manyheads/box"),
        ("grader/checks/test_rotary.py", "grader/checks"),
        ("tests/box/test_limits.py", "tests"),
    ],
)
def test_a_file_belongs_to_a_package(path: str, package: str) -> None:
    assert readability.package_of(path) == package


def test_texts_of_students_and_authors_are_left_out(tmp_path: Path) -> None:
    for name in (
        "manyheads/authoring/templates/__init__.py",
        "manyheads/authoring/templates/exercise/right.py",
        "tests/hostile/attempts/between/looks.py",
        "tests/hostile/test_wire.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    measured = [path for path, _ in readability.sources(tmp_path)]
    assert measured == ["manyheads/authoring/templates/__init__.py", "tests/hostile/test_wire.py"]


def test_find_lists_places(capsys: pytest.CaptureFixture[str]) -> None:
    readability.main(["find", "fmt_skips", "manyheads/box"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= readability.read_limits(LIMITS)["manyheads/box"]["fmt_skips"]
    assert all(re.match(r"manyheads/box/[\w/]+\.py:\d+: .*# fmt: ", line) for line in lines)


def test_a_wrong_command_prints_how_to_ask() -> None:
    with pytest.raises(SystemExit, match=r"tools\.readability find METRIC \[PACKAGE\]"):
        readability.main(["count"])
