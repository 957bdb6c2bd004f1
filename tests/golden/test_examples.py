"""Golden test: grade the class in examples/submitted and compare with recorded files.

`examples.json` contains the scores and diagnoses, which a person has reviewed. `written.json`
contains a digest of each result, export, Markdown text and page.

To review an intended change, run `python tests/golden/test_examples.py FOLDER` before and after it,
with two folders, and compare the folders by `diff -r`. The command also updates both files.
"""

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from manyheads.box import open_box
from manyheads.box.connection import Box
from manyheads.box.level_and_device_names import Level
from manyheads.course import Course, load_course
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.report.class_summary import ClassView
from manyheads.report.markdown import feedback_markdown
from manyheads.report.pages import write_pages
from manyheads.report.report_content import labels_of
from manyheads.report.score_exports import FORMATS
from manyheads.result import Result, read_results, write_result
from manyheads.submission import find_submissions

# the first test grades twenty students, which takes minutes on a busy machine
pytestmark = [pytest.mark.recorded, pytest.mark.timeout(1200)]

HERE = Path(__file__).parent
HOW_TO_UPDATE = "if it is meant: python tests/golden/test_examples.py FOLDER"
SUBMITTED = HERE.parents[1] / "examples" / "submitted"
SCHEMA = HERE.parents[1] / "manyheads" / "result.schema.json"

ENDLESS_LOOP_STUDENTS = {"jun"}  # a shorter time limit gives the same result

Summary = dict[str, dict[str, dict[str, object]]]


def summary_of(results: Path) -> Summary:
    """Return the score, misconceptions and failed outcomes of every attempt."""
    summary: Summary = {}
    for path in sorted(results.glob("*/*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        for exercise in result["exercises"]:
            misconceptions = [misconception["id"] for misconception in exercise["diagnosis"]]
            failures = sorted({check["outcome"] for check in exercise["checks"]} - {"passed"})
            entry = {"score": exercise["score"], "named": misconceptions, "not passed": failures}
            summary.setdefault(result["student"], {})[exercise["id"]] = entry
    return summary


def grade_examples(out: Path, box: Box) -> None:
    """Grade all examples with a fixed secret, so that the inputs of checks are the same.

    The search for wrong lines is off: it takes longer than everything else, and the summary does
    not contain its result.
    """
    course = load_course(HERE.parents[1])
    submissions, refused = find_submissions(course, SUBMITTED)
    assert not refused
    limits, settings = (course.limits.seconds_per_call, 1.0), Settings(b"golden" * 6, lines=False)
    judges = [Judge(with_time_limit(course, seconds), box, settings) for seconds in limits]
    for submission in submissions:
        judge = judges[submission.student in ENDLESS_LOOP_STUDENTS]
        write_result(judge.grade(submission), out)
        assert not judge.faults


def write_all(results: Path, out: Path) -> None:
    """Write everything that instructors and students get: results, exports, Markdown and pages."""
    labels = labels_of(load_course(HERE.parents[1]))
    loaded = [for_python_3_11(result) for result in read_results(results)]
    view = ClassView(loaded, labels=labels)
    write_pages(view, out / "pages")
    texts = {
        f"class.{name}": to_text(view) for name, to_text in FORMATS.items() if name != "gradescope"
    }
    for result in loaded:
        name = f"{result.student}-{result.assignment}"
        texts[f"{name}.md"] = feedback_markdown(result, labels)
        texts[f"{name}.json"] = f"{result.model_dump_json(indent=1)}\n"
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")


def for_python_3_11(result: Result) -> Result:
    """Return the result without package versions, and with Python 3.11 in place of this version.

    The sentence about a text that Python cannot read names the version.
    """
    this_version = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    text = result.model_copy(update={"versions": {}}).model_dump_json()
    return Result.model_validate_json(text.replace(this_version, "Python 3.11"))


def digests_of(out: Path) -> dict[str, str]:
    """Return the digest of every file in a folder."""
    files = sorted(path for path in out.rglob("*") if path.is_file())
    return {
        path.relative_to(out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        for path in files
    }


def with_time_limit(course: Course, seconds: float) -> Course:
    """Return the course with another time limit per call."""
    limits = course.limits.model_copy(update={"seconds_per_call": seconds})
    return replace(course, file=course.file.model_copy(update={"limits": limits}))


@pytest.fixture(scope="module")
def graded_examples(once: Callable[..., Path], box: Box) -> Path:
    """Return the folder of the results. They are graded once for all workers of pytest-xdist."""
    return once("golden", lambda out: grade_examples(out, box))


@pytest.fixture(scope="module")
def golden() -> Summary:
    """Return the recorded scores and diagnoses."""
    summary: Summary = json.loads((HERE / "examples.json").read_text(encoding="utf-8"))
    return summary


def test_scores_and_diagnoses_match_the_golden_file(graded_examples, golden):
    assert summary_of(graded_examples) == golden, HOW_TO_UPDATE


def test_all_written_files_match_their_golden_digests(graded_examples, tmp_path):
    write_all(graded_examples, tmp_path)
    golden = json.loads((HERE / "written.json").read_text(encoding="utf-8"))
    digests = digests_of(tmp_path)
    names = digests.keys() | golden.keys()
    changed = sorted(name for name in names if digests.get(name) != golden.get(name))
    assert not changed, f"{', '.join(changed)} changed; {HOW_TO_UPDATE}"


def test_every_result_is_valid_by_the_schema(graded_examples):
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    paths = list(graded_examples.glob("*/*.json"))
    assert len(paths) == len(list(SUBMITTED.glob("*/*")))
    for path in paths:
        jsonschema.validate(json.loads(path.read_text(encoding="utf-8")), schema)


@pytest.mark.parametrize(
    ("student", "exercises", "name"),
    [
        ("fatima", ["reshape_dance", "weight_split", "fused_qkv"], "wrong_view"),
        ("goran", ["weight_split", "mha_by_loop", "fused_qkv"], "scale_sqrt_c"),
        ("hana", ["self_attention", "weight_split", "sdpa_equivalence"], "dropout_always_on"),
        ("kofi", ["self_attention"], "mask_missing"),
        ("lena", ["weight_split"], "super_init_missing"),
        ("goran", ["grouped_query_attention"], "kv_heads_tiled"),
        ("goran", ["rotary"], "rope_halves"),
        ("goran", ["kv_cache"], "cache_mask_top_left"),
        ("hana", ["kv_cache"], "cache_changed"),
        ("kofi", ["rotary"], "rope_sign"),
    ],
)
def test_typical_bugs_are_the_first_diagnosis(golden, student, exercises, name):
    assert [golden[student][exercise]["named"][0] for exercise in exercises] == [name] * len(
        exercises
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tests/golden/test_examples.py FOLDER")
    root, out = HERE.parents[1], Path(sys.argv[1])
    with open_box(Level.NAMESPACES, load_course(root).limits.for_worker(), root) as judge_box:
        grade_examples(out / "results", judge_box)
    write_all(out / "results", out / "written")
    for name, new_content in (
        ("examples", summary_of(out / "results")),
        ("written", digests_of(out / "written")),
    ):
        text = json.dumps(new_content, indent=1, ensure_ascii=False)
        (HERE / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
