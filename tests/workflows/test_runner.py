"""The stand-in runner: files, outputs, conditions, rights and secrets as the service's own runner has them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workflows.hosted.expressions import UnknownExpression
from tests.workflows.hosted.records import ActionFailed, JobRun, Repository, load_workflow
from tests.workflows.hosted.runner import Run, Step
from tests.workflows.hosted.service import Service

HEAD = """
on: pull_request_target
permissions: {}
defaults: {run: {shell: bash}}
jobs:
"""


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A service with nothing in it."""
    with Service(tmp_path / "repositories") as opened:
        yield opened


def refuse(step: Step) -> None:
    raise ActionFailed("no")


def tell(step: Step) -> None:
    (step.workspace / "told").write_text(str(step.given))


def run_of(jobs: str, service: Service, folder: Path, repository: Repository | None = None) -> dict[str, JobRun]:
    settings = repository or Repository("school/class", {"A": "variable"})
    actions = {"a/refuse": refuse, "a/tell": tell}
    return Run(load_workflow(HEAD + jobs), "push", {"n": 1}, settings, service, folder, actions).whole()


def job(*steps: str, more: str = "") -> str:
    return f"  one:\n    runs-on: ubuntu-24.04\n{more}    steps:\n" + "".join(f"      - {step}\n" for step in steps)


def test_steps_speak_to_later_ones_through_the_runners_files(service: Service, tmp_path: Path) -> None:
    jobs = run_of(
        job(
            """run: 'echo A=1 >> "$GITHUB_ENV"; printf "B<<END\\ntwo\\nlines\\nEND\\n" >> "$GITHUB_ENV"; echo "$A-$B"'""",
            """{id: two, run: 'echo out=$A >> "$GITHUB_OUTPUT"; echo "# part" >> "$GITHUB_STEP_SUMMARY"'}""",
            """run: 'mkdir bin; printf "#!/bin/sh\\necho mine" > bin/tool; chmod +x bin/tool; echo "$PWD/bin" >> "$GITHUB_PATH"'""",
            """{env: {C: "${{ steps.two.outputs.out }}"}, run: 'echo "$A $B $C"; tool'}""",
            more="    outputs: {x: '${{ steps.two.outputs.out }}'}\n",
        ),
        service,
        tmp_path / "run",
    )
    assert [step.said for step in jobs["one"].steps] == ["-\n", "", "", "1 two\nlines 1\nmine\n"]
    assert (jobs["one"].outputs, jobs["one"].summary, jobs["one"].result) == ({"x": "1"}, "# part\n", "success")


def test_after_a_failure_only_those_go_on_that_ask_to(service: Service, tmp_path: Path) -> None:
    jobs = run_of(
        job("run: 'false | true; echo not here'", "run: echo no", "{if: failure(), run: echo yes}", "{if: 'always()', run: echo too}")
        + "  two:\n    needs: one\n    runs-on: x\n    steps: [{run: echo no}]\n"
        + "  three:\n    needs: [one, two]\n    if: ${{ !cancelled() }}\n    runs-on: x\n    steps: [{run: 'echo ${{ needs.one.result }} ${{ needs.two.result }}'}]\n",
        service,
        tmp_path / "run",
    )  # fmt: skip
    assert [step.outcome for step in jobs["one"].steps] == ["failure", "skipped", "success", "success"]
    assert [jobs[id_].result for id_ in ("one", "two", "three")] == ["failure", "skipped", "success"]
    assert jobs["three"].said == "failure skipped\n"


def test_an_action_gets_what_it_is_given_and_may_fail(service: Service, tmp_path: Path) -> None:
    jobs = run_of(
        job("{uses: a/tell@1, with: {x: '${{ vars.A }}', y: false}}", "uses: a/refuse@1", "run: echo no"),
        service,
        tmp_path / "run",
    )
    assert (tmp_path / "run" / "one" / "work" / "told").read_text() == "{'x': 'variable', 'y': 'false'}"
    assert [step.outcome for step in jobs["one"].steps] == ["success", "failure", "skipped"]


def test_a_secret_is_there_only_in_its_environment_and_only_where_it_is_named(service: Service, tmp_path: Path) -> None:
    repository = Repository("school/class", {"A": "variable"}, {"grading": ({"KEY": "s3cret"}, {"A": "of-grading"})})
    steps = ("{env: {K: '${{ secrets.KEY }}'}, run: 'echo ${{ vars.A }}=$K'}", "run: env")
    inside = run_of(job(*steps, more="    environment: {name: grading}\n"), service, tmp_path / "in", repository)["one"]
    assert inside.steps[0].said == "of-grading=s3cret\n"
    assert "s3cret" not in inside.steps[1].said
    outside = run_of(job(*steps), service, tmp_path / "out", repository)["one"]
    assert outside.steps[0].said == "variable=\n"
    wanted = "    environment: grading\n    if: vars.A == 'variable'\n"  # before a runner has the job
    assert run_of(job("run: 'true'", more=wanted), service, tmp_path / "if", repository)["one"].result == "success"


def test_a_step_inherits_nothing_of_this_process(service, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    said = run_of(job("run: env"), service, tmp_path / "run")["one"].said
    assert "PYTHONPATH" not in said
    assert "GITHUB_TOKEN" not in said
    assert f"HOME={tmp_path}" in said


def test_a_token_has_its_jobs_rights_until_the_job_ends(service: Service, tmp_path: Path) -> None:
    ask = """run: 'curl --silent --output /dev/null --write-out "%{http_code} " -H "Authorization: Bearer ${{ github.token }}" "$GITHUB_API_URL/repos/school/class/issues/1/comments?per_page=9&page=1"'"""
    for rights, code in (("{}", "403 "), ("{pull-requests: read}", "200 ")):
        folder = tmp_path / code
        assert run_of(job(ask, more=f"    permissions: {rights}\n"), service, folder)["one"].said == code
    assert service.tokens == {}


def test_what_a_step_says_to_the_runner_is_noticed(service: Service, tmp_path: Path) -> None:
    jobs = run_of(
        job("run: 'echo ok; echo \" ::error::no\"; echo a::b; echo x##[warning]y'"), service, tmp_path / "run"
    )
    assert jobs["one"].commands == [" ::error::no", "x##[warning]y"]


@pytest.mark.parametrize("jobs", [
    pytest.param(job("{run: 'true', working-directory: x}"), id="a step's key"),
    pytest.param(job("run: 'true'", more="    container: x\n"), id="a job's key"),
    pytest.param(job("uses: a/other@1"), id="an action"),
    pytest.param(job("run: 'echo ${{ inputs.x }}'"), id="a context"),
])  # fmt: skip
def test_what_the_stand_in_does_not_know_is_an_error(service: Service, tmp_path: Path, jobs: str) -> None:
    with pytest.raises(UnknownExpression):
        run_of(jobs, service, tmp_path / "run")


def test_a_line_that_is_no_pair_is_an_error(service: Service, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a pair"):
        run_of(job("run: 'echo nonsense >> \"$GITHUB_OUTPUT\"'"), service, tmp_path / "run")
    with pytest.raises(ValueError, match="the block never ends"):
        run_of(job('run: \'echo "A<<END" >> "$GITHUB_ENV"\''), service, tmp_path / "again")
