"""The tool itself, on real attempts: what it finds, and what it never gets to see."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.box.procstat import has_ended
from manyheads.errors import CourseFault
from manyheads.platforms.compare50 import compare, find_compare50, labels

REPOSITORY = Path(__file__).parents[2]
TINY = REPOSITORY / "tests" / "tiny_course"
OWN = REPOSITORY / ".cache" / "compare50" / "bin"  # where tools/compare50 puts it
EXERCISE = "07_fused_qkv"
GIVEN = (REPOSITORY / "exercises" / "multi_head_attention" / f"{EXERCISE}.py").read_text(encoding="utf-8")
RIGHT = sorted((REPOSITORY / "grader" / "right" / "fused_qkv").glob("*.py"))
SOME = RIGHT[0]
HTML = "<img src=x onerror=alert(1)>"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command, where it is installed."""
    monkeypatch.setenv("PATH", f"{OWN}{os.pathsep}{os.environ['PATH']}")
    if shutil.which("compare50") is None:
        pytest.skip("compare50 is not installed: similar submissions are not tested (sh tools/compare50)")
    return find_compare50(REPOSITORY)


def pairs_of(out: Path) -> list[tuple[set[str], float]]:
    """The pairs that the tool's own page lists, most alike first."""
    graph = re.search(r"var GRAPH = (.*?);?\s*</script>", (out / "index.html").read_text(encoding="utf-8"), re.DOTALL)
    assert graph
    links = json.loads(graph[1])["links"]
    return [({link["source"], link["target"]}, link["value"]) for link in sorted(links, key=lambda k: -k["value"])]


def test_a_copy_with_other_names_and_remarks_comes_first(tool: list[str], tmp_path: Path) -> None:
    first, *others = RIGHT[:6]
    text = first.read_text(encoding="utf-8")
    copied = re.sub(r"\bB, T, C\b", "batch, length, width", text)
    copied = re.sub(r"\bB\b", "batch", re.sub(r"\bT\b", "length", re.sub(r"\bC\b", "width", copied)))
    attempts = {"ada": text, "ben": f"# all my own work\n{copied}"}
    attempts |= {path.stem: path.read_text(encoding="utf-8") for path in others}
    assert copied != text
    assert compare(tool, attempts, GIVEN, EXERCISE, tmp_path / "out", pairs=3)
    found = pairs_of(tmp_path / "out")
    assert found[0][0] == {"submitted/ada", "submitted/ben"}
    assert found[0][1] > found[1][1]
    assert len(list((tmp_path / "out").glob("match_*.html"))) == len(found) == 3


def test_what_the_stub_gives_is_no_likeness(tool: list[str], tmp_path: Path) -> None:
    unwritten = "        raise NotImplementedError()\n"
    own = "def walk(x):\n" + "".join(f"    y{i} = x[{i}] * {i} + len(x) // {i + 2}\n" for i in range(8))
    attempts = {
        "a": GIVEN.replace(unwritten, "        return [row for row in x if row]\n"),
        "b": GIVEN.replace(unwritten, "        while x:\n            x -= 1\n"),
        "c": own,
        "d": f"{own}\n\ndef other():\n    return {{}}\n",
    }
    assert GIVEN.count(unwritten) > 0
    for given, first in ((GIVEN, "cd"), ("x = 1\n", "ab")):
        assert compare(tool, attempts, given, EXERCISE, tmp_path / first, pairs=1)
        assert pairs_of(tmp_path / first)[0][0] == {f"submitted/{student}" for student in first}


def test_a_second_run_takes_the_place_of_the_first_and_of_nothing_else(tool: list[str], tmp_path: Path) -> None:
    attempts = dict.fromkeys(("ada", "ben", "cat"), SOME.read_text(encoding="utf-8"))
    (tmp_path / "notes.html").write_text("mine")
    assert compare(tool, attempts, GIVEN, EXERCISE, tmp_path, pairs=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "index.html",
        "match_1.html",
        "match_2.html",
        "notes.html",
    ]
    assert compare(tool, attempts, GIVEN, EXERCISE, tmp_path, pairs=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.html", "match_1.html", "notes.html"]


def test_neither_a_name_nor_an_attempt_is_html_in_the_pages(tool: list[str], tmp_path: Path) -> None:
    text = f"# {HTML}\n" + SOME.read_text(encoding="utf-8")
    assert compare(tool, {HTML: text, "ben": text}, GIVEN, EXERCISE, tmp_path, pairs=1)
    assert HTML not in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert pairs_of(tmp_path)[0][0] == {"submitted/_img src_x onerror_alert_1__", "submitted/ben"}
    match = (tmp_path / "match_1.html").read_text(encoding="utf-8")
    assert "onerror" in match
    assert "<img" not in match


def test_a_label_is_safe_everywhere_and_never_anothers() -> None:
    names = ["ada", "-rf", "..", "a*", "a?", "a_", "[x]", "<b>", "é陳", "a b", "a/b"]
    made = labels(names)
    assert made == ["ada", "rf", "_", "a_", "a_~2", "a_~3", "_x_", "_b_", "é陳", "a b", "a_b"]


def fake(folder: Path, script: str) -> Path:
    """A program that stands in for the tool where it must not work, or tell what it was given."""
    program = folder / "compare50"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def test_a_tool_that_fails_is_one_sentence(tmp_path: Path) -> None:
    command = [str(fake(tmp_path, "exit 3"))]
    with pytest.raises(
        CourseFault, match=r"compare50 failed with status 3 on 07_fused_qkv\. Next: compare50 --version"
    ):
        compare(command, {"a": "", "b": ""}, "", EXERCISE, tmp_path / "out", pairs=1)


def told(path: Path) -> bool:
    return path.exists() and path.read_text().endswith("\n")


def held_up(folder: Path) -> tuple[list[str], dict[str, str]]:
    """A tool that does not end, nor does what it starts; and attempts, of which two repeat themselves."""
    command = [str(fake(folder, f"sleep 1000 & echo $! > {folder}/started; wait"))]
    return command, {
        "ada": GIVEN,
        "ben": "x=[" + "a," * 999 + "]",
        "cat": "".join(f"n{i} = " for i in range(999)) + "1",
    }


@pytest.mark.parametrize("bound", ["SECONDS", "MEMORY_GIB"])
def test_a_tool_that_does_not_end_is_stopped_and_the_sentence_says_whose_attempts_to_look_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    command, attempts = held_up(tmp_path)
    monkeypatch.setattr(f"manyheads.platforms.compare50.{bound}", 0)
    sentence = r"compare50 was stopped on 07_fused_qkv, after \d+ s or at \d GiB: .* look at those of (ben and cat|cat and ben), and take them out"
    with pytest.raises(CourseFault, match=sentence):
        compare(command, attempts, GIVEN, EXERCISE, tmp_path / "out", pairs=1)


def test_what_the_stopped_tool_had_started_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command, attempts = held_up(tmp_path)
    started = tmp_path / "started"
    monkeypatch.setattr("manyheads.platforms.compare50._memory_gib", lambda pid: 5 * told(started))
    with pytest.raises(CourseFault):
        compare(command, attempts, GIVEN, EXERCISE, tmp_path / "out", pairs=1)
    while not has_ended(
        started.read_text().strip()
    ):  # the kernel takes it down; a test without an end would say that it stays
        time.sleep(0.01)


def test_the_tool_gets_no_secret_of_ours_and_no_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADEBOOK_TOKEN", "secret")
    command = [str(fake(tmp_path, f"env > {tmp_path}/env"))]
    compare(command, {"a": "", "b": ""}, "", EXERCISE, tmp_path / "out", pairs=1)
    seen = (tmp_path / "env").read_text()
    assert "secret" not in seen
    assert "HTTPS_PROXY=http://127.0.0.1:9\n" in seen


def test_the_python_beside_the_tool_runs_it_wherever_a_link_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, links = tmp_path / "venv" / "bin", tmp_path / "links"
    own.mkdir(parents=True)
    links.mkdir()
    (links / "compare50").symlink_to(fake(own, "exit 0"))
    monkeypatch.setenv("PATH", str(links))
    assert find_compare50(tmp_path) == [str(links / "compare50")]
    (own / "python3").symlink_to("/usr/bin/env")
    assert find_compare50(tmp_path) == [str(own / "python3"), "-m", "compare50"]


# As a person runs it


def hand_in(folder: Path, **attempts: str) -> Path:
    for student, text in attempts.items():
        own = folder / "submitted" / student / "averages"
        own.mkdir(parents=True)
        (own / "01_running_mean.py").write_text(text, encoding="utf-8")
    return folder / "submitted"


def test_without_the_tool_one_sentence_says_how_to_get_it(run_course: Run, tmp_path: Path) -> None:
    submitted = hand_in(tmp_path, ada="x = 1\n")
    done = run_course("similar", submitted, "--course", TINY, env={"PATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (2, "")
    venv = TINY / ".cache" / "compare50"
    by_hand = f"python3 -m venv {venv} && {venv}/bin/pip install compare50"
    assert done.stderr == (
        "course: compare50 is not installed. "
        f"Next: pipx install compare50 (without pipx: {by_hand}), then the same again\n"
    )


def test_the_tool_is_found_in_the_courses_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / ".cache" / "compare50" / "bin"
    own.mkdir(parents=True)
    fake(own, "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_compare50(tmp_path) == [str(own / "compare50")]


def test_similar_names_the_page_and_asks_to_look_and_no_more(tool: list[str], run_course: Run, tmp_path: Path) -> None:
    text = (TINY / "grader" / "right" / "running_mean" / "loop.py").read_text(encoding="utf-8")
    body = "".join(f"    total_{i} = x[{i}] * {i} + len(x)\n" for i in range(12))
    submitted = hand_in(tmp_path, ada=text + "def more(x):\n" + body, ben=text + "def more(x):\n" + body)
    done = run_course("similar", submitted, "--course", TINY, "--out", "alike")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("01 The running mean: 2 written, alike/averages/running_mean/index.html\n")
    assert "pairs to look at, not findings" in " ".join(done.stdout.split())
    assert not re.search("cheat|plagiari|copied", done.stdout)
    assert (tmp_path / "alike" / "averages" / "running_mean" / "match_1.html").is_file()


def test_one_attempt_alone_is_compared_with_nothing(run_course: Run, tmp_path: Path) -> None:
    fake(tmp_path, "exit 3")
    submitted = hand_in(tmp_path, ada="x = 1\n")
    done = run_course("similar", submitted, "--course", TINY, env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert done.returncode == 0
    assert done.stdout.startswith("01 The running mean: 1 written, nothing to compare\n")
