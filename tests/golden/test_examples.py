"""The class in examples/submitted, graded in the box: scores and names are what they were when a
person read them.

So are the results, the exports, the Markdown and the pages, to the byte: `written.json` holds a
digest of each.

After a change that is meant: `python tests/golden/test_examples.py FOLDER` before it and after it
writes all of it into two folders, and `diff -r` shows what has changed. It also writes
`examples.json` and `written.json` anew.
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
from manyheads.result import read_results, write_result
from manyheads.submission import find_submissions

# twenty students are graded for the first test, which takes minutes on a busy machine
pytestmark = [pytest.mark.recorded, pytest.mark.timeout(1200)]

HERE = Path(__file__).parent
IF_MEANT = "if it is meant: python tests/golden/test_examples.py FOLDER"
SUBMITTED = HERE.parents[1] / "examples" / "submitted"
SCHEMA = HERE.parents[1] / "manyheads" / "result.schema.json"

ENDLESS = {"jun"}  # whose loop has no end, and no other end after less time

Summary = dict[str, dict[str, dict[str, object]]]


def summary_of(results: Path) -> Summary:
    """Score, names and outcomes of every attempt."""
    summary: Summary = {}
    for path in sorted(results.glob("*/*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        for exercise in result["exercises"]:
            named = [misconception["id"] for misconception in exercise["diagnosis"]]
            missed = sorted({check["outcome"] for check in exercise["checks"]} - {"passed"})
            entry = {"score": exercise["score"], "named": named, "not passed": missed}
            summary.setdefault(result["student"], {})[exercise["id"]] = entry
    return summary


def grade_examples(out: Path, box: Box) -> None:
    """Grade with a secret of this test's own: a wrong attempt may gain or lose a check with the
    inputs it meets.

    The line that is wrong is not searched for: that takes longer than all else, and is no part of
    the summary.
    """
    course = load_course(HERE.parents[1])
    submissions, refused = find_submissions(course, SUBMITTED)
    assert not refused
    limits, settings = (course.limits.seconds_per_call, 1.0), Settings(b"golden" * 6, lines=False)
    judges = [Judge(with_seconds(course, seconds), box, settings) for seconds in limits]
    for submission in submissions:
        judge = judges[submission.student in ENDLESS]
        write_result(judge.grade(submission), out)
        assert not judge.faults


def write_all(results: Path, out: Path) -> None:
    """Write what an instructor and a student get of these results: exports, Markdown, pages, and
    the results themselves.
    """
    labels = labels_of(load_course(HERE.parents[1]))
    loaded = [result.model_copy(update={"versions": {}}) for result in read_results(results)]
    view = ClassView(loaded, labels=labels)
    write_pages(view, out / "pages")
    texts = {f"class.{name}": to(view) for name, to in FORMATS.items() if name != "gradescope"}
    for result in loaded:
        name = f"{result.student}-{result.assignment}"
        texts[f"{name}.md"] = feedback_markdown(result, labels)
        texts[f"{name}.json"] = f"{result.model_dump_json(indent=1)}\n"
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")


def digests_of(out: Path) -> dict[str, str]:
    """The digest of every file."""
    files = sorted(path for path in out.rglob("*") if path.is_file())
    return {
        path.relative_to(out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        for path in files
    }


def with_seconds(course: Course, seconds: float) -> Course:
    """The course, with so much time for a call."""
    limits = course.limits.model_copy(update={"seconds_per_call": seconds})
    return replace(course, file=course.file.model_copy(update={"limits": limits}))


@pytest.fixture(scope="module")
def graded_examples(once: Callable[..., Path], box: Box) -> Path:
    """Graded once, whichever of pytest-xdist's workers asks first."""
    return once("golden", lambda out: grade_examples(out, box))


@pytest.fixture(scope="module")
def golden() -> Summary:
    summary: Summary = json.loads((HERE / "examples.json").read_text(encoding="utf-8"))
    return summary


def test_scores_and_diagnoses_match_the_golden_file(graded_examples, golden):
    assert summary_of(graded_examples) == golden, IF_MEANT


def test_all_written_files_match_their_golden_digests(graded_examples, tmp_path):
    write_all(graded_examples, tmp_path)
    golden = json.loads((HERE / "written.json").read_text(encoding="utf-8"))
    digests = digests_of(tmp_path)
    names = digests.keys() | golden.keys()
    changed = sorted(name for name in names if digests.get(name) != golden.get(name))
    assert not changed, f"{', '.join(changed)} changed; {IF_MEANT}"


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
    for name, golden_of in (
        ("examples", summary_of(out / "results")),
        ("written", digests_of(out / "written")),
    ):
        text = json.dumps(golden_of, indent=1, ensure_ascii=False)
        (HERE / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
