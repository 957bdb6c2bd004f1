"""Count what makes the Python of this repository hard to read, and hold the counts to limits.

Limits stand in tests/house.toml: for each package one number per metric. tests/test_house.py fails
if a count is above its limit. A limit may only go down: `update` lowers each limit to its count.

    python -m tools.readability show                      # the counts of each package
    python -m tools.readability find METRIC [PACKAGE]     # the places that a metric counts
    python -m tools.readability update                    # lower the limits to the counts

Input: the Python files below the folders of `package_of`, without texts that stand for a student's
or an author's. Steps: parse each file once (`CodeFile`), ask each metric of `METRICS` for its
places, count them by package (`count`), compare them with the table (`complaints`).
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMITS = ROOT / "tests" / "house.toml"
FOLDERS = ("manyheads", "grader/checks", "grader/misconceptions", "tests")
# Texts that are written as a student or an author would write them.
LEFT_OUT = (
    "manyheads/authoring/templates/*/**",
    "tests/courses/**",
    "tests/diagnosis/attempts/**",
    "tests/hostile/attempts/**",
    "tests/tiny_course/**",
)
HEAD = """\
# The limits of tests/test_house.py, for each package. `python -m tools.readability update` lowers
# them. To raise one is a decision: do it by hand, and give the reason in the commit.
"""

COLUMNS = 100
TOKEN_SLACK = 0.02  # a small change needs no new limit; one that adds a function does
# Fewer words are a title or a label, which needs no grammar.
MIN_WORDS_OF_SENTENCE = 4
MIN_WORDS_OF_COMMENT = 5

# Names that say nothing about the value.
UNINFORMATIVE = frozenset(
    """about above aside asked before below beside done due each every everything few first
    following found given goes gone held here himself it itself kept kind kinds known laid last
    left like made many meant mine more most named next nobody nothing now of one ones other others
    own part parts place placed places present rest right said seen shown some something such taken
    tells than that then there these thing things this those told twice wanted way ways what
    whatever where which who whoever whole whom whose wrong""".split()
)
# Free relative clauses, pronouns without a noun, and inverted word order.
SUSPECT = re.compile(
    r"""\b(?:whoever|whatever|whichever|nobody|somebody)\b
    | \b(?:what|who|whose)\ (?:is|are|was|has|it|they)\b
    | \b(?:is|are|was)\ (?:told|said|asked\ of)\b | \b(?:tells?|says?|asked)\ (?:of|no\ more)\b
    | \bof\ (?:it|them)\b | \bthat\ of\b
    | \bof\ (?:a|its|their)\ (?:kind|own)\b | \bas\ it\ (?:is|was|has|should)\b
    | ^(?:where|what|who|whose|of|by|to\ whom|for\ what)\b
    | [;,]\ (?:none|else|what|who|whose|and\ what|and\ who)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_FORMATTER_OFF = re.compile(r"#\s*fmt:\s*(?:skip|off)\b")
_END_OF_SENTENCE = re.compile(r"(?<=[.!?:])\s+")

Occurrence = tuple[int, str]  # a line, and the text that is counted there
Definition = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}


@dataclass(frozen=True)
class CodeFile:
    """The text of one file, parsed once for all metrics."""

    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text)

    @cached_property
    def tokens(self) -> list[tokenize.TokenInfo]:
        """All tokens. A formatted string is one, as Python 3.11 has it, whatever stands in it."""
        tokens = []
        depth = 0
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            name = tokenize.tok_name[token.type]
            if name in ("FSTRING_START", "TSTRING_START"):
                depth += 1
                if depth == 1:
                    tokens.append(token)
            elif name in ("FSTRING_END", "TSTRING_END"):
                depth -= 1
            elif depth == 0:
                tokens.append(token)
        return tokens

    @cached_property
    def docstrings(self) -> list[ast.Constant]:
        """The docstring of each module, class and function that has one."""
        definitions = (node for node in ast.walk(self.tree) if isinstance(node, Definition))
        texts = (_docstring(definition) for definition in definitions)
        return [text for text in texts if text is not None]

    @cached_property
    def comments(self) -> list[Occurrence]:
        """Each comment with its first line. A comment over several lines is one."""
        blocks: list[list[tokenize.TokenInfo]] = []
        for token in self.tokens:
            if token.type == tokenize.COMMENT:
                if blocks and _goes_on(blocks[-1][-1], token):
                    blocks[-1].append(token)
                else:
                    blocks.append([token])
        comments = []
        for block in blocks:
            text = " ".join(token.string.lstrip("# ") for token in block)
            comments.append((block[0].start[0], text))
        return comments


def _docstring(definition: Definition) -> ast.Constant | None:
    if not definition.body or not isinstance(definition.body[0], ast.Expr):
        return None
    value = definition.body[0].value
    return value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


def _goes_on(comment: tokenize.TokenInfo, token: tokenize.TokenInfo) -> bool:
    """Return whether the second comment stands alone on the line below the first one."""
    stands_below = token.start == (comment.start[0] + 1, comment.start[1])
    return stands_below and not token.line[: token.start[1]].strip()


def find_tokens(source: CodeFile) -> Iterator[Occurrence]:
    """Yield each token of code: no comments, docstrings, line ends or indentation."""
    texts = {text.lineno: text.end_lineno for text in source.docstrings}
    end_of_text = 0
    for token in source.tokens:
        line = token.start[0]
        if line in texts:
            end_of_text = texts[line] or line
        if token.type not in _NO_CODE and line > end_of_text:
            yield line, token.string


def find_uninformative_names(source: CodeFile) -> Iterator[Occurrence]:
    """Yield each name of `UNINFORMATIVE` that is assigned, a parameter, or defined."""
    for node in ast.walk(source.tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                pass
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                pass
            case ast.ClassDef(name=name):
                pass
            case _:
                continue
        if name.strip("_") in UNINFORMATIVE:
            yield node.lineno, name


def find_suspect_sentences(source: CodeFile) -> Iterator[Occurrence]:
    """Yield each sentence of a docstring or comment that `SUSPECT` matches."""
    texts = [(text.lineno, str(text.value), MIN_WORDS_OF_SENTENCE) for text in source.docstrings]
    texts += [(line, text, MIN_WORDS_OF_COMMENT) for line, text in source.comments]
    for line, text, min_words in texts:
        for sentence in _END_OF_SENTENCE.split(" ".join(text.split())):
            if len(sentence.split()) >= min_words and SUSPECT.search(sentence):
                yield line, sentence


def find_nested_comprehensions(source: CodeFile) -> Iterator[Occurrence]:
    """Yield each comprehension that has another one in it."""
    for node in ast.walk(source.tree):
        if isinstance(node, COMPREHENSIONS):
            inner = (child for child in ast.walk(node) if child is not node)
            if any(isinstance(child, COMPREHENSIONS) for child in inner):
                yield node.lineno, ast.unparse(node)


def find_double_conditionals(source: CodeFile) -> Iterator[Occurrence]:
    """Yield each statement with more than one conditional expression, apart from its body."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.stmt):
            conditionals = [n for n in _own_nodes(node) if isinstance(n, ast.IfExp)]
            if len(conditionals) > 1:
                yield node.lineno, f"{len(conditionals)} conditional expressions"


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of a statement that belong to no statement within it."""
    pending = list(ast.iter_child_nodes(statement))
    while pending:
        node = pending.pop()
        if not isinstance(node, ast.stmt):
            yield node
            pending += ast.iter_child_nodes(node)


def find_long_lines(source: CodeFile) -> Iterator[Occurrence]:
    """Yield each line of more than `COLUMNS` columns."""
    for number, line in enumerate(source.text.splitlines(), 1):
        if len(line) > COLUMNS:
            yield number, line


def find_long_summaries(source: CodeFile) -> Iterator[Occurrence]:
    """Yield the summary of each docstring where it takes more than one line."""
    for text in source.docstrings:
        summary = str(text.value).strip().partition("\n\n")[0]
        if "\n" in summary:
            yield text.lineno, " ".join(summary.split())


def find_unformatted(source: CodeFile) -> Iterator[Occurrence]:
    """Yield each remark that turns the formatter off."""
    for token in source.tokens:
        if token.type == tokenize.COMMENT and _FORMATTER_OFF.search(token.string):
            yield token.start[0], token.line.strip()


@dataclass(frozen=True)
class Metric:
    """One number of a package.

    Attributes:
        find: yields what is counted in a file.
        title: the plural, as in "12 long lines".
        advice: what to do if there are too many; {find} becomes the command that lists them.
        slack: how far above the limit a count may be, as a part of the limit.
    """

    find: Callable[[CodeFile], Iterator[Occurrence]]
    title: str
    advice: str
    slack: float = 0.0


METRICS = {
    "tokens": Metric(
        find_tokens,
        "tokens of code",
        "take code out, or raise the limit by hand and give the reason in the commit",
        TOKEN_SLACK,
    ),
    "uninformative_names": Metric(
        find_uninformative_names,
        "uninformative names",
        "name what the value holds; {find} lists them",
    ),
    "suspect_sentences": Metric(
        find_suspect_sentences,
        "suspect sentences",
        "begin with a concrete noun, and write out pronouns; {find} lists them",
    ),
    "nested_comprehensions": Metric(
        find_nested_comprehensions,
        "nested comprehensions",
        "give the inner one a name, or write a loop; {find} lists them",
    ),
    "double_conditionals": Metric(
        find_double_conditionals,
        "statements with two conditional expressions",
        "write one step per statement; {find} lists them",
    ),
    "long_lines": Metric(
        find_long_lines,
        f"lines over {COLUMNS} columns",
        "break them; {find} lists them",
    ),
    "long_summaries": Metric(
        find_long_summaries,
        "docstring summaries over one line",
        "say it in one line, and the rest below; {find} lists them",
    ),
    "fmt_skips": Metric(
        find_unformatted,
        "remarks that turn the formatter off",
        "let ruff format the statement; {find} lists them",
    ),
}
Counts = dict[str, dict[str, int]]  # for each package, the number of each metric


def package_of(path: str) -> str:
    """Return the package of a file of `FOLDERS`: each folder of the engine is one."""
    segments = path.split("/")
    if segments[0] == "manyheads":
        return "/".join(segments[: min(2, len(segments) - 1)])
    return next(folder for folder in FOLDERS if path.startswith(f"{folder}/"))


def packages(root: Path) -> list[str]:
    """Return the packages that are measured."""
    return list(dict.fromkeys(package_of(path) for path, _ in sources(root)))


def sources(root: Path, package: str = "") -> Iterator[tuple[str, CodeFile]]:
    """Yield each file of all packages or of one, with its path below `root`."""
    left_out = {path for pattern in LEFT_OUT for path in root.glob(pattern)}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            is_wanted = package in ("", package_of(name))
            if is_wanted and not left_out.intersection((path, path.parent)):
                yield name, CodeFile(path.read_text(encoding="utf-8"))


def count(root: Path, package: str = "") -> Counts:
    """Return the counts of all packages below `root`, or of one."""
    counts: Counts = {}
    for path, source in sources(root, package):
        of_package = counts.setdefault(package_of(path), dict.fromkeys(METRICS, 0))
        for name, metric in METRICS.items():
            of_package[name] += sum(1 for _ in metric.find(source))
    return counts


def complaints(counts: Counts, limits: Counts) -> Iterator[str]:
    """Yield a sentence for each count above its limit, and for each package without limits."""
    for package, of_package in counts.items():
        if package not in limits:
            yield (
                f"{package} has no limits in tests/{LIMITS.name}: "
                "python -m tools.readability update adds them."
            )
            continue
        for name, metric in METRICS.items():
            number, limit = of_package[name], limits[package].get(name, 0)
            if number > limit * (1 + metric.slack):
                find = f"python -m tools.readability find {name} {package}"
                slack = f" and {metric.slack:.0%} more" if metric.slack else ""
                yield (
                    f"{package} has {number} {metric.title}, and at most {limit}{slack} are "
                    f"allowed: {metric.advice.format(find=find)}."
                )


def lower_limits(counts: Counts, limits: Counts) -> Counts:
    """Return the limits with none above its count; a package without limits gets its counts."""
    lower: Counts = {}
    for package, of_package in sorted(counts.items()):
        old = limits.get(package, of_package)
        lower[package] = {
            name: min(number, old.get(name, number)) for name, number in of_package.items()
        }
    return lower


def read_limits(path: Path) -> Counts:
    """Read the table; without a file there are no limits."""
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def table_of(limits: Counts) -> str:
    """Return the text of the table."""
    blocks = [HEAD]
    for package, numbers in limits.items():
        rows = [f"{name} = {number}\n" for name, number in numbers.items()]
        blocks.append("".join([f'["{package}"]\n', *rows]))
    return "\n".join(blocks)


def show(root: Path) -> None:
    """Print the counts of each package, and their sums."""
    counts = count(root)
    sums: Counter[str] = Counter()
    width = max(map(len, counts))
    print(" " * width, *METRICS)
    for package, numbers in [*counts.items(), ("all", sums)]:
        print(f"{package:{width}}", *(f"{numbers[name]:{len(name)}}" for name in METRICS))
        sums.update(numbers if package in counts else {})


def find(root: Path, metric: str, package: str = "") -> None:
    """Print the places that a metric counts, of all packages or of one."""
    for path, source in sources(root, package):
        for line, text in METRICS[metric].find(source):
            print(f"{path}:{line}: {text}")


def update(root: Path) -> None:
    """Lower the limits to the counts, and say which are too low for that."""
    counts, limits = count(root), read_limits(LIMITS)
    LIMITS.write_text(table_of(lower_limits(counts, limits)), encoding="utf-8")
    print(*complaints(counts, read_limits(LIMITS)), sep="\n", end="")


def main(arguments: list[str]) -> None:
    """Run the command that the arguments name."""
    match arguments:
        case ["show"]:
            show(ROOT)
        case ["find", metric, *package] if metric in METRICS and len(package) < 2:
            find(ROOT, metric, *package)
        case ["update"]:
            update(ROOT)
        case _:
            sys.exit(f"{__doc__}\nMETRIC: {', '.join(METRICS)}")


if __name__ == "__main__":
    main(sys.argv[1:])
