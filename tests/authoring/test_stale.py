"""A release makes what is stale and nothing else, and no record of what is current makes green what is wrong."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from manyheads.authoring.compare_recordings import same_fingerprints
from manyheads.authoring.engine_digest import engine_digest, statements_of
from manyheads.authoring.index import NAME
from manyheads.authoring.record_calls import recorded_calls
from manyheads.authoring.release_exercises import Written, write_release
from manyheads.authoring.reuse import kept_file
from manyheads.authoring.stub import stub_of
from manyheads.authoring.verify.file_claims import verify_structure
from manyheads.checks.local import namespace_of
from manyheads.course import load_course
from manyheads.diagnosis import load_bank
from manyheads.diagnosis.recording import Fingerprints
from manyheads.diagnosis.recording_file import loaded, save
from manyheads.judge.catalogue import Catalogue
from tests import make
from tests.make import content

pytestmark = pytest.mark.journey

SOLUTION = "solutions/averages/01_running_mean.py"
CHECKS = "grader/checks/test_running_mean.py"
BANK = "grader/misconceptions/running_mean.py"
RIGHT = "grader/right/running_mean/loop.py"
WRONG = "grader/wrong/running_mean/median.py"
TEXTS = "grader/texts.yaml"
SCRIPT = "exercises/averages/01_running_mean.py"
FINGERPRINTS = "exercises/averages/fingerprints/01_running_mean.safetensors"


def release(folder: Path, *, fresh: bool = False) -> tuple[int, Written]:
    """How many steps it took, and what was written."""
    load_bank.cache_clear()  # as in a process of its own
    namespace_of.cache_clear()
    steps = []

    @contextmanager
    def shown(total: int) -> Iterator[Callable[[], None]]:
        steps.append(total)
        yield lambda: None

    course = load_course(folder)
    written = write_release(course, Catalogue(course), fresh=fresh, shown=shown)
    return steps[0], written


@pytest.fixture
def released(tiny_copy: Path) -> Path:
    """The folder of a tiny course that has just been released."""
    release(tiny_copy)
    return tiny_copy


def append(name: str, text: str) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        with (folder / name).open("a", encoding="utf-8") as file:
            file.write(text)

    return change


def replace(name: str, old: str, new: str) -> Callable[[Path], object]:
    return lambda folder: make.replace(folder / name, old, new)


def test_where_nothing_changed_nothing_is_made_and_the_files_are_the_same(released: Path) -> None:
    before = content(released)
    steps, written = release(released)
    assert (steps, written.written) == (0, [])
    assert [str(path.relative_to(released)) for path in written.files] == [
        SCRIPT,
        SCRIPT.replace(".py", ".ipynb"),
        FINGERPRINTS,
    ]
    assert content(released) == before


def test_a_copy_elsewhere_is_current_too(released: Path, tmp_path: Path) -> None:
    released.rename(tmp_path / "elsewhere")
    assert release(tmp_path / "elsewhere")[0] == 0


@pytest.mark.parametrize("change", [
    pytest.param(append(SOLUTION, "\n# a remark that students read\n"), id="the solution"),
    pytest.param(replace(CHECKS, "averages all that came", "averages what came"), id="a check's title"),
    pytest.param(append("grader/checks/conftest.py", "# a remark\n"), id="the checks' conftest"),
    pytest.param(replace(BANK, '"len(x)"', '"len(x) + 0"'), id="a mutant"),
    pytest.param(append(RIGHT, "# a remark\n"), id="a right attempt"),
    pytest.param(lambda folder: (folder / RIGHT).unlink(), id="a right attempt less"),
    pytest.param(append(WRONG, "# a remark\n"), id="an unlisted wrong attempt"),
    pytest.param(lambda folder: (folder / WRONG).unlink(), id="an unlisted wrong attempt less"),
    pytest.param(replace(TEXTS, "How many numbers are in the mean", "How many are in the mean"), id="a hint"),
    pytest.param(replace("course.yaml", "How many numbers have", "How many have"), id="the row of course.yaml"),
])  # fmt: skip
def test_what_an_exercise_is_made_from_makes_its_files_stale(released: Path, change: Callable[[Path], object]) -> None:
    change(released)
    assert release(released)[0] > 0
    assert release(released)[0] == 0


def index_with(folder: Path, **changed: object) -> None:
    index = json.loads((folder / NAME).read_text(encoding="utf-8"))
    index["running_mean"].update(changed)
    (folder / NAME).write_text(json.dumps(index), encoding="utf-8")


def test_where_only_the_engine_changed_that_asks_no_mutant_none_is_asked(released: Path) -> None:
    before = content(released)
    index_with(released, made_from="by another engine")
    steps, written = release(released)
    assert (steps, written.written) == (1, []), "the files alone"
    assert content(released) == before


@pytest.mark.parametrize("change", [
    pytest.param(replace(TEXTS, "How many numbers are in the mean", "How many are in the mean"), id="a hint"),
    pytest.param(replace("course.yaml", "How many numbers have", "How many have"), id="the row of course.yaml"),
])  # fmt: skip
def test_what_is_no_answer_of_a_mutants_is_renewed_without_asking_one(
    released: Path, change: Callable[[Path], object]
) -> None:
    change(released)
    assert release(released)[0] == 1
    kept = content(released)
    assert release(released, fresh=True)[0] > 1
    assert content(released) == kept


@pytest.mark.parametrize("change", [
    pytest.param(lambda f: index_with(f, made_from="x", recorded_from="y"), id="the engine that asks the mutants"),
    pytest.param(replace(BANK, '"len(x)"', '"len(x) + 0"'), id="a mutant"),
    pytest.param(append(RIGHT, "\n\ndef running_mean(x):\n    return x\n"), id="a right attempt"),
    pytest.param(replace(CHECKS, "averages all that came", "averages what came"), id="a check's title"),
])  # fmt: skip
def test_a_record_of_the_mutants_that_was_made_from_something_else_is_made_again(
    released: Path, change: Callable[[Path], object]
) -> None:
    change(released)
    assert release(released)[0] > 1
    made = content(released)
    release(released, fresh=True)
    assert content(released) == made


@pytest.mark.parametrize("name", ["attention_scores", "causal_mask"])
def test_records_of_the_real_course_are_kept_as_they_are(repository: Path, name: str) -> None:
    """Its calls hold more than the tiny course's: modules with weights, numbers in place of tensors, the same tensor twice."""
    course = load_course(repository)
    exercise = next(e for e in course.exercises if e.id == name)
    catalogue = Catalogue(course)
    recorded = recorded_calls(catalogue, exercise)
    kept = kept_file(exercise, stub_of(exercise), recorded)
    assert kept is not None
    assert len(loaded(kept).pairs.first) > 1000
    assert same_fingerprints(exercise.fingerprints.read_bytes(), kept)


def without_mutants(there: Fingerprints) -> Fingerprints:
    return dataclasses.replace(there, content=dataclasses.replace(there.content, mutants=()))


def with_another_answer(there: Fingerprints) -> Fingerprints:
    replies = tuple(each[::-1] for each in there.content.replies)
    return dataclasses.replace(there, content=dataclasses.replace(there.content, replies=replies))


@pytest.mark.parametrize("other", [
    pytest.param(with_another_answer, id="the reference's replies"),
    pytest.param(lambda there: dataclasses.replace(without_mutants(there),
        expected=[tuple(None if t is None else t * 1.01 for t in each) for each in there.expected]),
        id="the reference's outputs"),
    pytest.param(lambda there: dataclasses.replace(without_mutants(there), calls=there.calls[::-1]),
        id="what is asked"),
])  # fmt: skip
def test_a_record_whose_numbers_are_others_is_made_again(
    released: Path, other: Callable[[Fingerprints], Fingerprints]
) -> None:
    """As on a machine that computes others: no digest tells of it."""
    path, before = released / FINGERPRINTS, (released / FINGERPRINTS).read_bytes()
    path.write_bytes(save(other(loaded(before))))
    files = json.loads((released / NAME).read_text(encoding="utf-8"))["running_mean"]["files"]
    index_with(released, made_from="x", files={**files, FINGERPRINTS: hashlib.sha256(path.read_bytes()).hexdigest()})
    assert release(released)[0] == 1
    assert path.read_bytes() == before


def test_what_no_file_is_made_from_makes_nothing_stale(released: Path) -> None:
    append(TEXTS, "\nno_mutant_of_this:\n  title: unused\n  explanation: none\n  hints: [a, b, c]\n")(released)
    assert release(released)[0] == 0


@pytest.mark.parametrize("name", [SCRIPT, FINGERPRINTS])
@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-20] + b"0" * 20)])
def test_a_file_that_is_missing_or_was_altered_is_made_again(
    released: Path, name: str, harm: Callable[[Path], object]
) -> None:
    before = content(released)
    harm(released / name)
    assert release(released)[0] > 0
    assert content(released) == before


def test_a_kill_matrix_with_another_row_under_the_right_key_is_made_again(released: Path) -> None:
    path = released / FINGERPRINTS
    before = path.read_bytes()
    known = loaded(before)
    rows = (known.content.kills[0].translate({48: 49, 49: 48}), *known.content.kills[1:])
    path.write_bytes(save(dataclasses.replace(known, content=dataclasses.replace(known.content, kills=rows))))
    release(released)
    assert path.read_bytes() == before


@pytest.mark.parametrize("text", ["", "{}", "<<<<<<< HEAD\n", '{"running_mean": {"made_from": 1}}'])
def test_where_the_index_cannot_be_read_everything_is_made(released: Path, text: str) -> None:
    before = content(released)
    (released / NAME).write_text(text, encoding="utf-8")
    assert release(released)[0] > 0
    assert content(released) == before


@pytest.fixture
def lying(released: Path) -> Path:
    """The folder of a course whose index says that a file is current which is not."""
    before = json.loads((released / NAME).read_text(encoding="utf-8"))
    path, words = released / FINGERPRINTS, b"How many numbers are in the mean at position 0?"
    data = path.read_bytes()
    assert words in data
    path.write_bytes(data.replace(words, words.upper()))
    before["running_mean"]["files"][FINGERPRINTS] = hashlib.sha256(path.read_bytes()).hexdigest()
    (released / NAME).write_text(json.dumps(before), encoding="utf-8")
    return released


def test_verify_finds_what_an_index_that_lies_hides_from_a_release(lying: Path) -> None:
    assert release(lying)[0] == 0
    course = load_course(lying)
    claims = {claim.says: claim for claim in verify_structure(course, Catalogue(course))}
    claim = claims["exercises/ is exactly what solutions/ yields"]
    assert claim.failures == (f"{FINGERPRINTS} is not what solutions/ yields",)
    assert claim.next == "course release --fresh"


def test_a_fresh_release_believes_no_index(lying: Path) -> None:
    steps, written = release(lying, fresh=True)
    assert steps > 0
    assert written.written == [lying / FINGERPRINTS]
    assert b"How many numbers are in the mean at position 0?" in (lying / FINGERPRINTS).read_bytes()


def test_the_engines_digest_is_of_what_is_imported_and_of_the_words_beside_it() -> None:
    digests = {engine_digest(name) for name in ("errors", "course", "diagnosis.bank", "authoring.release_steps")}
    assert len(digests) == 4
    assert engine_digest("authoring.release_steps") == engine_digest("authoring.release_steps", "diagnosis.bank")
    assert engine_digest("errors") != engine_digest("errors", "cli.app")


def test_the_engines_digest_changes_with_code_and_not_with_words_or_places(tmp_path: Path) -> None:
    code = 'from a import b\n\n\ndef f(x):\n    """Double it."""\n    return 2 * x  # twice\n\n\nY = f(3)\n'
    same = [code.replace("Double it", "Return two of it"), code.replace("from a", "from c"), "# first\n" + code]
    other = [code.replace("2 * x", "3 * x"), code.replace("f(3)", "f(4)"), code.replace("Y = f(3)\n", "")]

    def digests(text: str) -> list[str]:
        (file := tmp_path / "module.py").write_text(text)
        return sorted(statements_of(file))

    assert all(digests(text) == digests(code) for text in same)
    assert all(digests(text) != digests(code) for text in other)
