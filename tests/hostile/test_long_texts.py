"""Internal: analyses get arguments that only the judge makes. Their work is linear in the text.

Each text is as long as the judge reads, and built so that a careless analysis would take quadratic
work. Work is the number of Python calls, not time.
"""

import inspect
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache, partial
from importlib import import_module
from itertools import count
from operator import attrgetter, methodcaller
from pathlib import Path
from pkgutil import iter_modules

import pytest

import manyheads
from manyheads.box.connection import Stopped
from manyheads.box.worker.messages import Call, Raised, Reply
from manyheads.checks.hidden_check import CheckOutcome, Layer
from manyheads.checks.runner import Exchange
from manyheads.diagnosis.evidence import guards_of
from manyheads.judge import exception_advice
from manyheads.judge.attribute_public_replies import FunctionSummary, FunctionVerdict
from manyheads.judge.choose_failure_of_visible_checks import ChosenFailure
from manyheads.judge.edit_search import MAX_CHARACTERS, MAX_EDITS, MAX_LINES, candidates
from manyheads.judge.exception_advice import suggest
from manyheads.judge.explain_file_parts_not_run import are_the_cause
from manyheads.submission import Source
from manyheads.submission.read import LINE_LIMIT, without_engine, without_magics
from manyheads.submission.source import CODE_LIMIT, DEEPEST

ENGINE = Path(manyheads.__file__).parent
# the most Python calls per character; a short text counts as 20,000 characters
CALLS_PER_CHARACTER = 120
BYTES_PER_CHARACTER = 1500  # most bytes per character: parsing alone takes up to a thousand
RAISING_CALLS = 200  # recorded calls that raise, for the analysis of guards
CALLS_PER_EDIT = 600  # most Python calls per tried edit, each of which copies and compares a text


def fill_text(
    item: Callable[[int], str],
    sep: str = "\n",
    longest: int = CODE_LIMIT - 1000,
    lines: int = LINE_LIMIT - 10,
) -> str:
    """Return item(0), item(1), … joined by `sep`, as many as fit in a text that the judge reads."""
    pieces: list[str] = []
    remaining = longest
    for number in count():
        pieces.append(item(number))
        remaining -= len(pieces[-1]) + len(sep)
        if remaining < 0 or (len(pieces) * (1 + pieces[-1].count("\n")) > lines and "\n" in sep):
            return sep.join(pieces[:-1])
    raise AssertionError


def short_text(item: Callable[[int], str], sep: str = "\n") -> str:
    """Return as many items as fit in a text for which the judge tries edits."""
    return fill_text(item, sep, MAX_CHARACTERS - 1000, MAX_LINES - 10)


def walrus(value: str) -> str:
    """Return 90 nested assignment expressions around a value."""
    return "".join(f"(a{i}:=" for i in range(90)) + value + ")" * 90


TEXTS = {
    "a ring of functions": fill_text(lambda i: f"def f{i}():f{i + 1}", lines=4900),
    "functions that name many others": fill_text(
        lambda i: f"def f{i}():{','.join(f'f{i * 7 % 900 + j}' for j in range(20))}"
    ),
    "a function that names a ring": (
        f"def f0():\n {','.join(f'g{i}' for i in range(2400))}\n f\ndef f():0\n"
    )
    + "\n".join(f"def g{i}():g{(i + 1) % 2400}" for i in range(2400)),
    "a ring of methods": "class f:\n" + fill_text(lambda i: f" def m{i}(s):s.m{i + 1}()"),
    "a ring of classes": fill_text(
        lambda i: f"class C{i}(C{i + 1}):\n def forward(s):raise ValueError"
    ),
    "one line of 100,000 statements": fill_text(lambda _: "x", ";"),
    "one value assigned to thousands of names": fill_text(lambda i: f"a{i}", "=") + "=f",
    "a name for each, and a value of all": "".join(f"a{i}=" for i in range(1500))
    + f"[{','.join(f'a{i}' for i in range(1500))}]\ndef f():a0",
    "thousands of main guards": fill_text(lambda _: "if __name__=='__main__':f()"),
    "thousands of decorators": fill_text(lambda _: "@f") + "\ndef f(): pass",
    "thousands of assignments": "def f(x):\n"
    + fill_text(lambda i: f" a{i}=x.size(0)+a{i}")
    + "\n if a0: raise ValueError",
    "thousands of guards": "def f(x):\n"
    + fill_text(lambda i: f" if x.shape[0]=={i}: raise ValueError"),
    "thousands of elif": "def f(x):\n if x: pass\n"
    + fill_text(lambda _: " elif x: raise ValueError"),
    "a chain of `or`": "def f(x):\n if x"
    + fill_text(lambda _: " or x.size(0)%2", "")
    + ": raise ValueError",
    "assignments within assignments": f"def f(x):\n if {walrus('x.foo()')}: raise ValueError",
    "assignments of sizes within assignments": (
        f"def f(x):\n y={walrus('x.size(0)')}\n if {walrus('x.foo()')}: raise ValueError"
    ),
    "a chain of attributes": "def f(x): return x" + fill_text(lambda _: ".a", ""),
    "a chain of calls": "def f(x): return x" + fill_text(lambda _: ".a()", ""),
    "a chain of comparisons": "def f(x): return x" + fill_text(lambda _: "<x", ""),
    "a very long sum": "def f(x): return x" + fill_text(lambda _: "+x", ""),
    "a sum as deep as the judge reads": "def f(x): return x" + "+x" * (DEEPEST - 10),
    "a sum of long names": "def f(x): return x" + short_text(lambda _: f"+{'x' * 60}", ""),
    "brackets": f"x={'(' * 99_000}{')' * 99_000}",
    "signs": f"x={'-' * 190_000}1",
    "lambdas": f"f={'lambda:' * 28_000}0",
    "functions within functions": "\n".join(
        " " * i + f"def f{i}(): pass" if i == 98 else " " * i + f"def f{i}():" for i in range(99)
    ),
    "a string of definitions": f'x="""{fill_text(lambda _: "def f", chr(10))}"""',
    "strings of definitions": fill_text(lambda _: '"""def f"""'),
    "comments of definitions": fill_text(lambda _: "# def f"),
    "a comment of 190,000 hashes": f"{'#' * 190_000}def f",
    "notebook cells that are not Python": fill_text(lambda _: "def f(: x"),
    "pairs of names": "def f(x):\n " + short_text(lambda i: f"a{i % 40},b{i % 40}=x,x", ";"),
    "a call of thousands of arguments": (
        f"def f(x): return x.view({short_text(lambda i: str(i), ',')})"
    ),
    "thousands of similar names": fill_text(lambda i: f"def attent{i:04d}(): 0"),
}


MISSING_ATTRIBUTE = Raised(
    "AttributeError", ("AttributeError",), "'A' object has no attribute 'm3'", "call", 1
)
UNDEFINED = Raised("NameError", ("NameError",), "name 'f3' is not defined", "call", 1)
UNBOUND = Raised(
    "UnboundLocalError",
    (),
    "cannot access local variable 'x' where it is not associated",
    "call",
    2,
)
NONE_INDEXED = Raised("TypeError", (), "'NoneType' object is not subscriptable", "call", 2)
FUNCTION_INDEXED = Raised("TypeError", (), "'function' object is not subscriptable", "call", 2)


def refusal_at(line: int, message: str = "") -> Raised:
    return Raised("ValueError", ("ValueError", "Exception"), message, "call", line)


# All analyses of a text share a Source, as they do in a judge.
@lru_cache(maxsize=1)
def script_source(text: str) -> Source:
    return Source("a.py", text)


@lru_cache(maxsize=1)
def notebook_source(text: str) -> Source:
    """A notebook whose cells are the lines of the text."""
    return Source("a.ipynb", text, cells=tuple(range(1, text.count("\n") + 2)))


def guards(text: str) -> None:
    lines = text.count("\n") + 1
    guards_of(
        script_source(text),
        {i: ("f", refusal_at(1 + i * 37 % lines)) for i in range(RAISING_CALLS)},
    )


def suggest_all(text: str) -> None:
    """Ask for a suggestion for each kind of exception."""
    source = script_source(text)
    for raised in (
        UNDEFINED,
        MISSING_ATTRIBUTE,
        UNBOUND,
        NONE_INDEXED,
        FUNCTION_INDEXED,
        refusal_at(1),
    ):
        suggest(source, raised)


def find_causes(text: str) -> None:
    stops = [Stopped(i + 1, UNDEFINED) for i in range(text.count("\n") + 1)]
    are_the_cause(notebook_source(text), stops, [Exchange("", Call("f"), Reply(raised=UNDEFINED))])


# Arguments for the analyses, beside the source, by the name of the parameter.
ARGUMENTS = {
    "name": "f",
    "names": "f",
    "target": "f",
    "targets": ["f"],
    "line": 2,
    "edit": "",
    "expected_names": ("x", "y"),
    "is_class": False,
    "raised": refusal_at(2),
    "raised_on": [1],
    "explained": (),
    "describe": str,
    "transcript": (),
    "stopped": (),
    "summaries": [FunctionSummary(name, is_called=True, is_wrong=True) for name in ("f", "f0")],
    "chosen": {
        name: ChosenFailure("a check", "its evidence", NONE_INDEXED) for name in ("f", "f0")
    },
    "arguments": ("x", "y"),
    "verdict": FunctionVerdict("f", "undefined"),
    "outcome": CheckOutcome("check", "a check", Layer.VALUES, 1, "", "failed"),
    "function": "f",
}
KINDS_OF_SOURCE: Mapping[str, Callable[[str], Source]] = {
    " of a script": script_source,
    " of a notebook": notebook_source,
}
# another test limits the work for edits of lines
PACKAGES = ("judge", "submission", "diagnosis")
DASK = "manyheads.judge.dask_cluster"  # takes no source, and two seconds to import


def functions_of_a_source() -> Iterator[tuple[str, Callable[[str], object]]]:
    """Yield each public function that takes a source and otherwise only arguments listed above."""
    for info in (
        module
        for package in PACKAGES
        for module in iter_modules([ENGINE / package], f"manyheads.{package}.")
        if module.name != DASK
    ):
        for name, function in vars(import_module(info.name)).items():
            if (
                name.startswith("_")
                or getattr(function, "__module__", "") != info.name
                or isinstance(function, type)
            ):
                continue
            parameters = inspect.signature(function).parameters if callable(function) else {}
            needed = [
                parameter.name
                for parameter in parameters.values()
                if parameter.default is parameter.empty and parameter.name != "source"
            ]
            needs_unknown_mapping = any(
                str(parameter.annotation).startswith("Mapping")
                and not isinstance(ARGUMENTS.get(parameter.name), Mapping)
                for parameter in parameters.values()
            )  # as guards_of takes
            if (
                "source" in parameters
                and ARGUMENTS.keys() >= set(needed)
                and not needs_unknown_mapping
            ):
                arguments = {name: ARGUMENTS[name] for name in needed}
                for ending, source_of in KINDS_OF_SOURCE.items():
                    analyse = partial(run_analysis, function, source_of, arguments)
                    yield f"{info.name}.{name}{ending}", analyse


def run_analysis(
    function: Callable[..., object],
    source_of: Callable[[str], Source],
    arguments: Mapping[str, object],
    text: str,
) -> None:
    function(source=source_of(text), **arguments)


def members_of_source() -> Iterator[tuple[str, Callable[[str], object]]]:
    """Yield every public property and method of Source, in their order of definition."""
    for name, member in vars(Source).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property | cached_property):
            read: Callable[[Source], object] = attrgetter(name)
        elif inspect.isfunction(member):
            _, *needed = inspect.signature(member).parameters
            read = methodcaller(name, *(ARGUMENTS[argument] for argument in needed))
        else:  # the default of a field
            continue
        for ending, source_of in KINDS_OF_SOURCE.items():
            analyse = partial(read_member, read, source_of)
            yield f"{Source.__module__}.Source.{name}{ending}", analyse


def read_member(
    read: Callable[[Source], object], source_of: Callable[[str], Source], text: str
) -> None:
    read(source_of(text))


# For each analysis: the most Python calls per character, and the function that runs it.
ANALYSES: dict[str, tuple[int, Callable[[str], object]]] = {
    **{
        name: (CALLS_PER_CHARACTER, analyse)
        for name, analyse in (*members_of_source(), *functions_of_a_source())
    },
    "suggestions": (2 * CALLS_PER_CHARACTER, suggest_all),
    "guards": (CALLS_PER_CHARACTER, guards),
    "parts that did not run": (CALLS_PER_CHARACTER, find_causes),
    "lines of IPython's": (
        CALLS_PER_CHARACTER,
        lambda text: without_magics(Source("", f"{text}\n!ls")),
    ),
    "the engine's lines": (
        CALLS_PER_CHARACTER,
        lambda text: without_engine(Source("", f"{text}\nimport manyheads")),
    ),
}
QUICK_TEXTS = (
    "a ring of functions",
    "a function that names a ring",
    "assignments within assignments",
    "a name for each, and a value of all",
    "brackets",
)
ALL_TEXTS = [
    pytest.param(text, id=name, marks=() if name in QUICK_TEXTS else pytest.mark.journey)
    for name, text in TEXTS.items()
]


class TooManyCalls(BaseException):
    """The function made more calls than allowed."""


def count_calls(analyse: Callable[[], object], max_calls: int) -> int:
    """Return how many Python calls a function makes. TooManyCalls ends it after `max_calls`."""
    counter = count()
    last = 0

    def count_event(_frame: object, event: str, _arg: object) -> None:
        nonlocal last
        last = next(counter) if event in ("call", "c_call") else last
        if last > max_calls:
            raise TooManyCalls

    sys.setprofile(count_event)
    try:
        analyse()
    finally:
        sys.setprofile(None)
    return last


@pytest.fixture(autouse=True)
def empty_caches() -> None:
    """Empty the caches, so that each test counts all its work."""
    for function in (script_source, notebook_source, exception_advice._file):
        function.cache_clear()


@pytest.mark.parametrize("text", ALL_TEXTS)
def test_every_analysis_takes_linear_work(text):
    assert len(text) <= CODE_LIMIT
    assert text.count("\n") < LINE_LIMIT
    for name, (work, analyse) in ANALYSES.items():
        max_calls = work * max(len(text), 20_000)
        try:
            count_calls(lambda analyse=analyse: analyse(text), max_calls)
        except TooManyCalls:
            pytest.fail(f"{name}: more than {max_calls} calls for {len(text)} characters")


@pytest.mark.parametrize("text", ALL_TEXTS)
def test_each_tried_edit_takes_bounded_work(text):
    source = script_source(text)
    assert (
        count_calls(lambda: candidates(source, ["f"], [1]), MAX_EDITS * CALLS_PER_EDIT)
        <= MAX_EDITS * CALLS_PER_EDIT
    )


def test_analyses_of_a_call_ring_take_linear_memory():
    """An analysis of all pairs of 4,950 functions once took 1.6 GiB."""
    text = TEXTS["a ring of functions"]
    tracemalloc.start()
    try:
        for name, (_, analyse) in ANALYSES.items():
            # guards are read one at a time, which is slow under tracemalloc
            if name != "guards":
                analyse(text)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < BYTES_PER_CHARACTER * len(text)
