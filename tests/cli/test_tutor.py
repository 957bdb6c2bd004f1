"""What a tutor's tools give: the evidence of `--json`, hints in their turn, the lesson, and nothing of a solution."""

from __future__ import annotations

import asyncio
import builtins
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from manyheads.authoring.leaks import HiddenLines, hidden_lines
from manyheads.box.forked import open_own_box
from manyheads.checks.local import LocalRecordingRunner, namespace_of
from manyheads.cli.tutor import tutor
from manyheads.course import Course, Exercise, load_course
from manyheads.diagnosis.bank import load_bank
from manyheads.diagnosis.recording_file import read
from manyheads.errors import CourseFault
from manyheads.evidence import Evidence
from manyheads.student.check_attempt import check_attempt

REPOSITORY = Path(__file__).parents[2]
TINY = REPOSITORY / "tests" / "tiny_course"
SCRIPT = "exercises/averages/01_running_mean.py"
RIGHT = (TINY / "grader" / "right" / "running_mean" / "loop.py").read_text(encoding="utf-8")
WRONG = RIGHT.replace("x[: t + 1].mean()", "x[: t + 1].sum() / len(x)")

Talk = Callable[..., list[Any]]


def talk(server: Any, *calls: tuple[str, dict[str, str]]) -> list[Any]:
    """What a client is answered: of a call that went well its object, else its text."""

    async def answers() -> list[Any]:
        async with Client(server) as client:
            found = [await client.call_tool(name, given) for name, given in calls]
            return [a.content[0].text if a.is_error else a.structured_content for a in found]

    return asyncio.run(answers())


@pytest.fixture
def ask(student_copy: Path) -> Iterator[Talk]:
    """Ask the tools about the tiny course's exercise, after a text was saved."""
    with open_own_box(meta=True) as box:
        server = tutor(load_course(student_copy), box)

        def asked(source: str | None, *tools: str) -> list[Any]:
            if source is not None:
                (student_copy / SCRIPT).write_text(source, encoding="utf-8")
            return talk(server, *((tool, {} if tool == "status" else {"exercise": "running_mean"}) for tool in tools))

        yield asked


def test_each_tool_gives_what_its_command_gives_as_json(ask: Talk, run_course, student_copy: Path) -> None:
    tools = ("check", "trace", "status")
    for name, told in zip(tools, ask(WRONG, *tools), strict=True):
        printed = run_course(name, *([] if name == "status" else ["running_mean"]), "--json", cwd=student_copy).stdout
        assert Evidence.model_validate(told) == Evidence.model_validate_json(printed)


def test_an_argument_that_there_is_not_is_refused(student_copy: Path) -> None:
    with open_own_box(meta=True) as box:
        server = tutor(load_course(student_copy), box)
        (said,) = talk(server, ("trace", {"exercise": "running_mean", "answers": "BCAAC"}))
    assert "answers" in said
    assert "Extra inputs are not permitted" in said
    assert all(tool.input_schema["additionalProperties"] is False for tool in asyncio.run(server.list_tools()))


def test_the_third_hint_is_refused_until_the_file_was_saved_after_the_second(ask: Talk) -> None:
    _, second, early, again = (each["exercises"][0] for each in ask(WRONG, "check", "hint", "hint", "hint"))
    assert (second["hint"]["step"], early["hint"], early["problem"]) == (2, None, again["problem"])
    assert early["problem"] == (
        "Hint 3 comes after a try: change 01_running_mean.py and save it. Next: course check running_mean"
    )
    checked, third = (each["exercises"][0] for each in ask(f"{WRONG}\n", "check", "hint"))
    assert (checked["state"], third["hint"]["step"], third["problem"]) == ("in progress", 3, "")


def test_the_lesson_is_its_text_and_what_is_asked_for_and_none_of_the_code(ask: Talk) -> None:
    stub = (TINY / SCRIPT).read_text(encoding="utf-8")
    (lesson,) = ask(stub.replace("raise NotImplementedError()", "return x.sum() + 1234"), "lesson")
    assert lesson["text"].startswith("# ")
    assert lesson["asks"]["running_mean"].startswith("Average all numbers up to each position.\n\nArgs:\n    x: (T,)")
    assert "1234" not in str(lesson)
    (broken,) = ask("# %% [markdown]\n# Words.\n\n# %%\ndef running_mean(x:\n", "lesson")
    assert (broken["text"], broken["asks"]) == ("Words.", {})


def test_what_cannot_be_answered_is_an_error_with_a_next_step(ask: Talk, student_copy: Path) -> None:
    with open_own_box(meta=True) as box:
        (said,) = talk(tutor(load_course(student_copy), box), ("check", {"exercise": "nothing"}))
    assert said.endswith("there is no exercise 'nothing'; there are: running_mean. Next: course status")
    (student_copy / SCRIPT).unlink()
    (missing,) = ask(None, "lesson")
    assert "01_running_mean.py is not here." in missing


def test_without_the_package_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tiny: Course) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **named: Any) -> Any:
        if name.startswith("mcp"):
            raise ImportError(name)
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with open_own_box() as box:
        with pytest.raises(
            CourseFault, match=r"needs mcp, .* Next: .*python\S* -m pip install --constraint constraints.txt mcp$"
        ):
            tutor(tiny, box)


# Nothing of a solution comes back, whatever stands in the student's file.

PUT = ("status", "lesson", "check", "trace", "hint", "hint", "hint")
NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]\d+)?")


@cache
def real_course() -> tuple[Course, HiddenLines]:
    """The course with its solutions, and what may not be told of it."""
    course = load_course(REPOSITORY)
    return course, hidden_lines(course)


@cache
def expected_pairs(exercise: Exercise) -> frozenset[tuple[str, str]]:
    """Every two numbers that stand side by side in what the reference returns to a recorded call, to three digits."""
    pairs: set[tuple[str, str]] = set()
    runner = LocalRecordingRunner(namespace_of(exercise.solution))
    for call in read(exercise.fingerprints).calls:
        for output in runner.execute(call).outputs:
            if output.tensor is not None and output.tensor.is_floating_point():
                numbers = [f"{number:.3g}" for number in output.tensor.flatten().tolist()]
                pairs.update(pairwise(numbers))
    return frozenset(pair for pair in pairs if all("." in number for number in pair))


def strings(told: object) -> Iterator[str]:
    """Every text in an answer."""
    if isinstance(told, str):
        yield told
    elif isinstance(told, dict | list):
        for inner in told.values() if isinstance(told, dict) else told:
            yield from strings(inner)


def given_away(exercise: Exercise, source: str, told: object) -> set[str]:
    """What of an answer is hidden, and not the student's own: lines of code, and rows of expected numbers."""
    hidden, texts = real_course()[1], list(strings(told))
    lines = hidden.within("\n".join(texts)) - hidden.within(source)
    numbers = [[f"{float(number):.3g}" for number in NUMBER.findall(text)] for text in texts if text not in source]
    pairs = {pair for row in numbers for pair in pairwise(row)}
    return lines | {" ".join(pair) for pair in pairs & expected_pairs(exercise)}


def attempts(exercise: Exercise) -> list[Path]:
    """Wrong attempts, as students write them."""
    return sorted((REPOSITORY / "grader" / "wrong" / exercise.id).glob("*.py"))


async def put_all(client: Client, exercise: Exercise, sources: list[Path]) -> dict[str, set[str]]:
    """Put every tool to each of these attempts; what was given away, by attempt."""
    found: dict[str, set[str]] = {}
    stub = exercise.script.read_text(encoding="utf-8")
    hidden_of = next(e for e in real_course()[0].exercises if e.id == exercise.id)
    for path in sources:
        source = path.read_text(encoding="utf-8")
        exercise.script.write_text(source, encoding="utf-8")
        told = [await client.call_tool(tool, {} if tool == "status" else {"exercise": exercise.id}) for tool in PUT]
        assert not [each for each in told if each.is_error], path
        hints = [each.structured_content["exercises"][0]["hint"] for each in told[-3:]]
        assert all(hint is None or hint["step"] < 3 for hint in hints), path
        if leak := given_away(hidden_of, source, [each.structured_content for each in told]):
            found[f"{exercise.id}/{path.name}"] = leak
    exercise.script.write_text(stub, encoding="utf-8")
    return found


@pytest.fixture
def class_copy(tmp_path: Path) -> Course:
    """The real course as a student has it."""
    shutil.copytree(REPOSITORY / "exercises", tmp_path / "class" / "exercises")
    shutil.copy(REPOSITORY / "course.yaml", tmp_path / "class")
    return load_course(tmp_path / "class")


def test_a_line_of_a_solution_and_a_row_of_expected_numbers_would_be_noticed() -> None:
    exercise = real_course()[0].exercises[0]
    line = next(text.text for text in real_course()[1].origin.values() if text.of_solution and len(text.text) > 40)
    row = " ".join(next(iter(expected_pairs(exercise))))
    for leak in (line, f"expected [{row}]"):
        assert given_away(exercise, "", {"exercises": [{"evidence": leak}]})
    assert not given_away(exercise, line, {"exercises": [{"code": line}]})  # which the student wrote


def test_no_tool_gives_a_solution_away_a_sample(class_copy: Course) -> None:
    async def run() -> None:
        async with Client(tutor(class_copy, box)) as client:
            for exercise in (class_copy.exercises[0], class_copy.exercises[3]):
                assert await put_all(client, exercise, attempts(exercise)[:2]) == {}

    with open_own_box(meta=True) as box:
        asyncio.run(run())


@pytest.mark.soak
@pytest.mark.journey
@pytest.mark.timeout(1200)
def test_no_tool_gives_a_solution_away_whatever_the_attempt(class_copy: Course) -> None:
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "manyheads", "mcp"],
        cwd=str(class_copy.root),
        env={"PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"},
    )

    async def run() -> None:
        async with Client(stdio_client(command)) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == [
                "status", "lesson", "check", "trace", "hint",
            ]  # fmt: skip
            for exercise in class_copy.exercises:
                assert await put_all(client, exercise, attempts(exercise)) == {}

    asyncio.run(run())


@pytest.mark.soak
@pytest.mark.journey
@pytest.mark.timeout(1200)
def test_check_and_hint_give_nothing_away_of_any_misconception(
    class_copy: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants are asked in this process, for most have no file: the likeliest of each misconception, and every tenth of all."""
    mutants: dict[str, Any] = {}

    def check_one(course: Course, exercise: Exercise, source: Any, box: object = None) -> Any:
        return check_attempt(read(exercise.fingerprints), mutants[source.source], None, exercise)

    monkeypatch.setattr("manyheads.cli.own_evidence.check_one", check_one)

    async def run() -> None:
        async with Client(tutor(class_copy, box)) as client:
            for exercise in class_copy.exercises:
                hidden_of = next(e for e in real_course()[0].exercises if e.id == exercise.id)
                bank = load_bank(hidden_of)
                first = {mutant.id: mutant for mutant in reversed(bank.mutants)}
                for number, mutant in enumerate([*first.values(), *bank.mutants[::10]]):
                    exercise.script.write_text(source := f"mutant = {number}\n", encoding="utf-8")
                    mutants[source] = LocalRecordingRunner(mutant.namespace)
                    told = [
                        await client.call_tool(tool, {"exercise": exercise.id}) for tool in ("check", "hint", "hint")
                    ]
                    assert not [each for each in told if each.is_error], mutant
                    said = [each.structured_content for each in told]
                    assert given_away(hidden_of, "", said) == set(), (exercise.id, mutant.id)

    with open_own_box(meta=True) as box:
        asyncio.run(run())
