"""Checks from recording: every mutant is named, what is right passes, and no code is in the
file.
"""

import ast
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from manyheads.box.connection import Box
from manyheads.box.worker.messages import Build, Call, Raised, Reply
from manyheads.checks.runner import LocalRecordingRunner, namespace_of
from manyheads.course import Course, CourseError, Exercise
from manyheads.diagnosis import BuiltMutant, load_bank
from manyheads.diagnosis.fault_dictionary import FaultDictionary
from manyheads.diagnosis.fingerprint import ReplyFingerprint, comparable_fingerprint
from manyheads.diagnosis.recording_file import read, save
from manyheads.judge.attempt_runner import AttemptRunner
from manyheads.result import ExerciseResult
from manyheads.student.check_attempt import check_attempt
from manyheads.submission import Source
from tests.make import TINY

pytestmark = pytest.mark.recorded

FILE = TINY / "exercises" / "averages" / "fingerprints" / "01_running_mean.safetensors"
RIGHT = sorted([*TINY.glob("solutions/*/*.py"), *TINY.glob("grader/right/*/*.py")])


@pytest.fixture(scope="module")
def recording() -> FaultDictionary:
    return read(FILE)


@pytest.fixture
def mutants(tiny: Course, running_mean: Exercise) -> tuple[BuiltMutant, ...]:
    return load_bank(running_mean).mutants


@pytest.fixture
def check_source(
    tiny: Course, box: Box, recording: FaultDictionary
) -> Callable[[str], ExerciseResult]:
    """Check an attempt's source in a process of its own."""
    limits = tiny.limits.for_worker()

    def check(source: str) -> ExerciseResult:
        attempt = AttemptRunner(box, Source("01_running_mean.py", source), limits)
        try:
            return check_attempt(recording, attempt)
        finally:
            attempt.close()

    return check


def names(result: ExerciseResult) -> list[str]:
    return [d.id for d in result.diagnosis]


def test_a_file_that_is_read_and_saved_again_is_the_same_bytes(recording):
    assert save(recording) == FILE.read_bytes()


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda data: b"", id="an empty file"),
        pytest.param(lambda data: data[:-1], id="a file that was cut off"),
        pytest.param(
            lambda data: b"version https://git-lfs.github.com/spec/v1\n", id="a pointer to a file"
        ),
        pytest.param(
            lambda data: data.replace(b"running_mean", b"running\0mean", 1),
            id="a header that is no JSON",
        ),
        pytest.param(
            lambda data: re.sub(rb'(format\\":)\d', rb"\g<1>0", data, count=1),
            id="a format of another day",
        ),
        pytest.param(
            lambda data: data.replace(b"expected", b"expekted", 1), id="an entry that is missing"
        ),
        pytest.param(
            lambda data: re.sub(rb'(counts\\":\[)\d', rb"\g<1>7", data, count=1),
            id="a reply too few",
        ),
    ],
)
def test_a_spoilt_file_is_an_error_that_says_what_to_do(tmp_path, spoil):
    path = tmp_path / "f.safetensors"
    spoilt = spoil(FILE.read_bytes())
    assert spoilt != FILE.read_bytes()
    path.write_bytes(spoilt)
    with pytest.raises(
        CourseError, match=rf"^{path} cannot be read \(\w+\)\. As an .* Next: git checkout {path}$"
    ):
        read(path)


def test_a_file_that_was_never_released_is_not_looked_for_in_git_alone(tmp_path):
    path = tmp_path / "f.safetensors"
    with pytest.raises(
        CourseError,
        match=rf"^{path} is not here\. As an instructor who has not released it yet, make ",
    ):
        read(path)


HEAD = "import torch\n\n\ndef running_mean(x):\n"


@pytest.mark.parametrize(
    ("body", "outcomes", "named"),
    [
        pytest.param(
            "    assert len(x)\n    return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)\n",
            ["passed"] * 4,
            [],
            id="a right attempt",
        ),
        pytest.param(
            "    assert len(x)\n    return x.cumsum(0) / len(x)\n",
            ["failed", "failed", "passed", "passed"],
            ["counts_all"],
            id="a listed misconception",
        ),
        pytest.param(
            "    return x.cumsum(0) / max(len(x), 1)\n",
            ["failed", "failed", "failed", "passed"],
            ["counts_all", "empty_unchecked"],
            id="two misconceptions at once",
        ),
        pytest.param(
            (
                "    assert len(x)\n    n = x.new_ones(len(x)).cumsum(0)\n"
                "    return x.cumsum(0) / (6 if len(x) == 6 else n)\n"
            ),
            ["failed", "passed", "passed", "passed"],
            [],
            id="a listed misconception for six numbers only",
        ),
        pytest.param(
            "    raise NotImplementedError()\n", ["error"] * 4, ["stub_untouched"], id="the stub"
        ),
        pytest.param(
            "    return (x > 0).softmax(0)\n",
            ["error"] * 4,
            [],
            id="what PyTorch has not for this dtype",
        ),
        pytest.param(
            "    import os\n    os._exit(0)\n", ["crashed"] * 4, [], id="an attempt that leaves"
        ),
    ],
)
def test_a_students_file_is_checked_in_a_process_of_its_own(check_source, body, outcomes, named):
    result = check_source(HEAD + body)
    assert [c.outcome for c in result.checks] == outcomes
    assert names(result) == named
    assert result.score == outcomes.count("passed")


def test_an_exception_of_pytorch_s_own_is_told_as_it_is_and_not_as_an_unwritten_stub(check_source):
    result = check_source(HEAD + "    return (x > 0).softmax(0)\n")
    assert [f.state for f in result.functions] == ["wrong"]
    assert "not implemented for 'Bool'" in result.checks[0].evidence


def test_gradients_that_the_file_has_switched_off_for_what_it_prints_are_asked_all_the_same(
    check_source,
):
    body = "    assert len(x)\n    return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)\n"
    result = check_source(f"import torch\ntorch.set_grad_enabled(False)\n{HEAD}{body}")
    assert result.score == result.max_score


def test_failed_checks_come_first_and_only_they_have_hints_and_evidence(check_source):
    result = check_source(HEAD + "    assert len(x)\n    return x.cumsum(0) / len(x)\n")
    assert [c.id for c in result.checks] == ["values", "gradients", "shape", "refuses_nothing"]
    assert [bool(c.evidence) for c in result.checks] == [True, True, False, False]


def test_the_untouched_stub_is_known_as_script_and_as_notebook(recording, averages):
    from manyheads.submission import read_attempt

    folder = TINY / "exercises" / averages.id
    stem = "01_running_mean"
    script = read_attempt(folder, stem, None, 1024)
    notebook = read_attempt(folder, stem, recording.stub, 1024)
    assert (script.name, notebook.name) == (f"{stem}.py", f"{stem}.ipynb")
    assert script.code_digest == notebook.code_digest == recording.stub


def texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, child in value.items():
            yield from (key, *texts_in(child))
    elif isinstance(value, list):
        for child in value:
            yield from texts_in(child)


def test_the_file_holds_no_code(tiny):
    data = FILE.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    body = json.loads(header["__metadata__"]["body"])
    statements = [text for text in texts_in(body) if "\n" in text or is_more_than_words(text)]
    assert statements == []
    code = [p for folder in ("solutions", "grader") for p in (tiny.root / folder).rglob("*.py")]
    lines = {line.strip() for p in code for line in p.read_text(encoding="utf-8").splitlines()}
    everything = "\n".join(texts_in(body))
    assert [
        line for line in lines if len(line) > 20 and '"""' not in line and line in everything
    ] == []


def is_more_than_words(text: str) -> bool:
    """Whether this is Python that computes or assigns something."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError:
        return False
    return any(isinstance(node, ast.Call | ast.Assign | ast.BinOp | ast.Import) for node in nodes)


@pytest.mark.parametrize(
    ("type_", "stage", "subject", "expected"),
    [
        pytest.param(
            "RuntimeError", "call", Build("Layer"), "refused", id="a mask that is too small"
        ),
        pytest.param("RuntimeError", "build", Build("Layer"), "other", id="while it is built"),
        pytest.param("RuntimeError", "call", "layer", "other", id="a function"),
        pytest.param("KeyError", "call", Build("Layer"), "other", id="another exception"),
        pytest.param("ValueError", "call", Build("Layer"), "refused", id="a refusal in words"),
    ],
)
def test_what_counts_as_a_refusal(type_, stage, subject, expected):
    raised = Raised(type_, (type_, "Exception"), "no", stage, 3)
    trace = comparable_fingerprint(
        ReplyFingerprint(raised="refused"), Call(subject), Reply(raised=raised)
    )
    assert trace.raised == expected


def test_where_nothing_is_refused_an_exception_is_one():
    raised = Raised("RuntimeError", ("RuntimeError", "Exception"), "no", "call", 3)
    assert (
        comparable_fingerprint(
            ReplyFingerprint(), Call(Build("Layer")), Reply(raised=raised)
        ).raised
        == "other"
    )


def test_a_recorded_call_that_no_check_asks_is_held_against_nobody(recording, mutants):
    # its call stays in the file
    checks = tuple(check for check in recording.checks if check.id != "gradients")
    fewer = replace(recording, checks=checks)
    mutant = next(m for m in mutants if m.id == "counts_all")
    assert names(check_attempt(fewer, LocalRecordingRunner(mutant.namespace))) == ["counts_all"]


def test_a_check_that_recordings_cannot_decide_is_left_to_the_grading_and_that_is_said(recording):
    checks = tuple(
        c.model_copy(update={"oracle_uses": ()}) if c.id == "gradients" else c
        for c in recording.checks
    )
    fewer = replace(recording, checks=checks)
    result = check_attempt(fewer, LocalRecordingRunner(namespace_of(RIGHT[0])))
    assert (result.score, result.max_score, result.unseen) == (3, 4, 1)
    assert result.unseen_checks == ("lets gradients through",)
    assert result.is_done


def test_what_is_asked_last_is_asked_of_attempts_alone_that_pass_all_before(recording, mutants):
    last = recording.visible[-1]
    checks = tuple(
        c.model_copy(update={"is_last": True}) if c.id == last.id else c for c in recording.checks
    )
    changed = replace(recording, checks=checks)
    correct_result = check_attempt(changed, LocalRecordingRunner(namespace_of(RIGHT[0])))
    assert last.id in {check.id for check in correct_result.checks}
    verdicts = set()
    for mutant in mutants:
        baseline = check_attempt(recording, LocalRecordingRunner(mutant.namespace))
        fails_another = any(
            check.outcome != "passed" for check in baseline.checks if check.id != last.id
        )
        result = check_attempt(changed, LocalRecordingRunner(mutant.namespace))
        ends = {check.id: (check.outcome, check.max_score) for check in result.checks}
        assert (ends[last.id] == ("skipped", last.points)) is fails_another
        assert (result.unseen_checks, result.unseen, result.max_score) == (
            (),
            0,
            baseline.max_score,
        )
        verdicts.add(fails_another)
    assert True in verdicts
