"""Every package is within the limits of tests/house.toml, and each metric counts correctly."""

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


def test_the_table_of_limits_lists_exactly_the_existing_packages() -> None:
    assert sorted(readability.read_limits(LIMITS)) == sorted(PACKAGES)


NESTED = "sizes = [len([y for y in x]) for x in rows]"
DOUBLE = "size = (1 if a else 2) + (3 if b else 4)"
FORMATTED_STRING = 'text = f"{a + b} and {c!r:>{width}}"'


# row: (metric, code, expected count)
METRIC_CASES = {
    "an empty file": ("tokens", "", 0),
    "an assignment": ("tokens", "size = 1\n", 3),
    "comments and empty lines": ("tokens", "size = 1  # one\n\n# two\n", 3),
    "the docstring of a module": ("tokens", '"""A module."""\nsize = 1\n', 3),
    "the docstring of a function": ("tokens", 'def f():\n    """A."""\n    return 1\n', 7),
    "a text that is no docstring": ("tokens", 'size = """a\nb"""\n', 3),
    "a formatted string counts as one token": ("tokens", FORMATTED_STRING, 3),
    "a variable": ("uninformative_names", "found = 1\n", 1),
    "a parameter": ("uninformative_names", "def told(each, *, size): ...\n", 2),
    "a class": ("uninformative_names", "class Found: ...\nclass other: ...\n", 1),
    "names with underscores": ("uninformative_names", "_found = other_ = 1\n", 2),
    "a name that is only used": ("uninformative_names", "found_path = print(found)\n", 0),
    "a variable of a comprehension": ("uninformative_names", "[each for each in rows]\n", 1),
    "a docstring": ("suspect_sentences", '"""Return what is told of it."""\n', 1),
    "the second sentence": ("suspect_sentences", '"""A good line. Whoever is late waits."""\n', 1),
    "a sentence of two words": ("suspect_sentences", '"""What is."""\n', 0),
    "a comment that begins with where": ("suspect_sentences", "# Where there is none, wait\n", 1),
    "a comment of two lines": ("suspect_sentences", "# A file that is read\n# whoever asks\n", 1),
    "a clear comment": (
        "suspect_sentences",
        "# The path of the file\n# Of the course\n",
        0,
    ),
    "a clear docstring": ("suspect_sentences", '"""Return the path of the file."""\n', 0),
    "a comprehension in another": ("nested_comprehensions", NESTED, 1),
    "two comprehensions": (
        "nested_comprehensions",
        "a = [x for x in y]\nb = {x for x in y}",
        0,
    ),
    "a list in a dict": (
        "nested_comprehensions",
        "s = {x: [y for y in x] for x in z}",
        1,
    ),
    "two conditionals in a sum": ("double_conditionals", DOUBLE, 1),
    "a conditional in another": ("double_conditionals", "a = 1 if b else 2 if c else 3", 1),
    "one in each line": (
        "double_conditionals",
        "a = 1 if b else 2\nc = 3 if d else 4",
        0,
    ),
    "two conditionals in a function": (
        "double_conditionals",
        f"def f():\n    {DOUBLE}\n",
        1,
    ),
    "one in an if": (
        "double_conditionals",
        "if (1 if a else 2):\n    b = 1 if c else 2\n",
        0,
    ),
    "100 columns": ("long_lines", f"a = '{'x' * 94}'\n", 0),
    "101 columns": ("long_lines", f"a = '{'x' * 95}'\n", 1),
    "a long comment": ("long_lines", f"# {'x' * 99}\n", 1),
    "a summary of one line": ("long_summaries", '"""One line."""\n', 0),
    "a summary and a long description": ("long_summaries", '"""One line.\n\nTwo\nlines.\n"""\n', 0),
    "a summary of two lines": ("long_summaries", '"""Two\nlines.\n"""\n', 1),
    "a fmt skip": ("fmt_skips", "a = [1,\n 2]  # fmt: skip\n", 1),
    "a fmt skip after another comment": ("fmt_skips", "a = 1  # ones  # fmt:skip\n", 1),
    "fmt off and on": ("fmt_skips", "# fmt: off\na = [1,\n 2]\n# fmt: on\n", 1),
    "a fmt skip in a string": ("fmt_skips", "a = '# fmt: skip'\n", 0),
}


@pytest.mark.parametrize(
    ("metric", "text", "number"),
    METRIC_CASES.values(),
    ids=METRIC_CASES,
)
def test_a_metric_counts_its_occurrences(metric: str, text: str, number: int) -> None:
    assert len([*METRICS[metric].find(CodeFile(text))]) == number


ZEROS = dict.fromkeys(METRICS, 0)


@pytest.mark.parametrize(
    ("metric", "number", "limit", "is_allowed"),
    [
        ("long_lines", 7, 7, True),
        ("long_lines", 8, 7, False),
        ("tokens", 1020, 1000, True),  # 2% more tokens are tolerated
        ("tokens", 1021, 1000, False),
    ],
)
def test_a_count_may_reach_but_not_exceed_its_limit(
    metric: str, number: int, limit: int, is_allowed: bool
) -> None:
    counts, limits = (
        {"tests": ZEROS | {metric: number}},
        {"tests": ZEROS | {metric: limit}},
    )
    sentences = [*readability.complaints(counts, limits)]
    assert len(sentences) == (not is_allowed)
    for sentence in sentences:
        assert sentence.startswith(f"tests has {number} {METRICS[metric].title}, and at most")
        assert f"at most {limit} " in sentence


def test_a_complaint_names_the_next_step() -> None:
    counts = {"manyheads/judge": ZEROS | {"long_lines": 3, "tokens": 5}}
    limits = {"manyheads/judge": ZEROS | {"long_lines": 1, "tokens": 4}}
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


def test_an_update_only_lowers_limits() -> None:
    counts = {"b": ZEROS | {"tokens": 50, "long_lines": 3}, "a": ZEROS | {"tokens": 7}}
    limits = {"b": ZEROS | {"tokens": 60, "long_lines": 2}, "gone": ZEROS}
    lowered = readability.lower_limits(counts, limits)
    assert lowered == {
        "a": ZEROS | {"tokens": 7},
        "b": ZEROS | {"tokens": 50, "long_lines": 2},
    }
    assert readability.lower_limits(counts, lowered) == lowered


def test_the_table_of_limits_survives_writing_and_reading(tmp_path: Path) -> None:
    limits = {"manyheads": ZEROS | {"tokens": 7}, "grader/checks": ZEROS}
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


def test_templates_and_student_attempts_are_not_measured(tmp_path: Path) -> None:
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


def test_the_find_command_lists_file_and_line(capsys: pytest.CaptureFixture[str]) -> None:
    readability.main(["find", "fmt_skips", "manyheads/box"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= readability.read_limits(LIMITS)["manyheads/box"]["fmt_skips"]
    assert all(re.match(r"manyheads/box/[\w/]+\.py:\d+: .*# fmt: ", line) for line in lines)


def test_an_unknown_command_prints_the_usage() -> None:
    with pytest.raises(SystemExit, match=r"tools\.readability find METRIC \[PACKAGE\]"):
        readability.main(["count"])
