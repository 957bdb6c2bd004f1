"""The stand-in runner: expressions, files, conditions, rights and secrets as the service's own has them, and no guess."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.workflows.hosted.expressions import Contexts, UnknownExpression, condition, evaluate, fill
from tests.workflows.hosted.runner import ActionFailed, JobRun, Repository, Run, Step, load_workflow
from tests.workflows.hosted.service import Service


def contexts(well: bool = True) -> Contexts:
    values = {
        "vars": {"GPU": "box", "EMPTY": ""},
        "needs": {"cpu": {"result": "success", "outputs": {"hygiene": "clean", "artifact-id": "7"}}},
        "github": {"event": {"pull_request": {"number": 7}}},
    }
    status = {"always": lambda: True, "cancelled": lambda: False, "success": lambda: well, "failure": lambda: not well}
    return Contexts(values, status)


UNKNOWN = object()


@pytest.mark.parametrize(("expression", "value"), [
    ("vars.MISSING.deeper", None),
    ("needs.cpu.outputs.artifact-id", "7"),
    ("github.event.pull_request.number || github.event.inputs.pull_request", 7),
    ("needs.cpu.outputs.hygiene == 'CLEAN'", True),
    ("needs.cpu.outputs.hygiene != 'clean'", False),
    ("vars.MISSING == ''", True),
    ("vars.EMPTY != ''", False),
    ("vars.GPU != ''", True),
    ("'it''s'", "it's"),
    ("vars.EMPTY || 'other'", "other"),
    ("vars.EMPTY && 'other'", ""),
    ("!(vars.EMPTY || cancelled())", True),
    ("failure() && always() || always()", True),
    *((unknown, UNKNOWN) for unknown in (
        "", "vars.GPU =", "vars.GPU == ", "(vars.GPU", "vars.GPU vars.GPU", "contains(vars.GPU, 'b')", "hashFiles()",
        "secrets.KEY", "vars.GPU < 3", "vars['GPU']", "vars.*", 'vars.GPU == "box"', "$x", "1",
    )),
])  # fmt: skip
def test_an_expression_has_the_value_that_the_service_gives_it(expression: str, value: Any) -> None:
    if value is UNKNOWN:
        with pytest.raises(UnknownExpression):
            evaluate(expression, contexts())
    else:
        assert evaluate(expression, contexts()) == value


def test_in_a_text_every_expression_is_filled_in() -> None:
    text = "a-${{ github.event.pull_request.number }}-${{ vars.MISSING }}-${{ always() }}-${{vars.GPU}}"
    assert fill(text, contexts()) == "a-7--true-box"
    with pytest.raises(UnknownExpression):
        fill("${{ needs.cpu }}", contexts())


@pytest.mark.parametrize(("text", "well", "failed"), [
    (True, True, False),
    ("${{ vars.GPU != '' }}", True, False),
    ("vars.EMPTY", False, False),
    ("failure()", False, True),
    ("${{ !cancelled() && vars.GPU }}", True, True),
])  # fmt: skip
def test_a_condition_asks_that_all_went_well_unless_it_says_otherwise(text: str, well: bool, failed: bool) -> None:
    assert condition(text, contexts(True)) is well
    assert condition(text, contexts(False)) is failed
    with pytest.raises(UnknownExpression):
        condition("${{ vars.GPU }} == 'box'", contexts())


HEAD = "on: pull_request_target\npermissions: {}\ndefaults: {run: {shell: bash}}\njobs:\n"


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


def test_steps_speak_to_later_ones_through_the_runners_files_and_inherit_nothing(service, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    steps = (
        """run: 'echo A=1 >> "$GITHUB_ENV"; printf "B<<END\\ntwo\\nlines\\nEND\\n" >> "$GITHUB_ENV"; echo "$A-$B$PYTHONPATH"'""",
        """{id: two, run: 'echo out=$A >> "$GITHUB_OUTPUT"; echo "# part" >> "$GITHUB_STEP_SUMMARY"'}""",
        """run: 'mkdir bin; printf "#!/bin/sh\\necho mine" > bin/tool; chmod +x bin/tool; echo "$PWD/bin" >> "$GITHUB_PATH"'""",
        """{env: {C: "${{ steps.two.outputs.out }}"}, run: 'echo "$A $B $C"; tool'}""",
        """run: 'echo ok; echo " ::error::no"; echo a::b; echo x##[warning]y'""",
    )
    one = run_of(job(*steps, more="    outputs: {x: '${{ steps.two.outputs.out }}'}\n"), service, tmp_path / "run")[
        "one"
    ]
    assert [step.said for step in one.steps[:4]] == ["-\n", "", "", "1 two\nlines 1\nmine\n"]
    assert (one.outputs, one.summary, one.result) == ({"x": "1"}, "# part\n", "success")
    assert one.commands == [" ::error::no", "x##[warning]y"], "what a step says to the runner is noticed"
    for wrong, says in (("echo nonsense", "not a pair"), ('echo "A<<END"', "the block never ends")):
        with pytest.raises(ValueError, match=says):
            run_of(job(f"run: '{wrong} >> \"$GITHUB_OUTPUT\"'"), service, tmp_path / says)


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
    actions = job("{uses: a/tell@1, with: {x: '${{ vars.A }}', y: false}}", "uses: a/refuse@1", "run: echo no")
    one = run_of(actions, service, tmp_path / "again")["one"]
    assert (tmp_path / "again" / "one" / "work" / "told").read_text() == "{'x': 'variable', 'y': 'false'}"
    assert [step.outcome for step in one.steps] == ["success", "failure", "skipped"]


def test_a_secret_is_there_only_in_its_environment_and_only_where_it_is_named(service: Service, tmp_path: Path) -> None:
    repository = Repository("school/class", {"A": "variable"}, {"grading": ({"KEY": "s3cret"}, {"A": "of-grading"})})
    steps = ("{env: {K: '${{ secrets.KEY }}'}, run: 'echo ${{ vars.A }}=$K'}", "run: env")
    inside = run_of(job(*steps, more="    environment: {name: grading}\n"), service, tmp_path / "in", repository)["one"]
    assert inside.steps[0].said == "of-grading=s3cret\n"
    assert "s3cret" not in inside.steps[1].said
    assert "GITHUB_TOKEN" not in inside.steps[1].said
    outside = run_of(job(*steps), service, tmp_path / "out", repository)["one"]
    assert outside.steps[0].said == "variable=\n"
    wanted = "    environment: grading\n    if: vars.A == 'variable'\n"  # before a runner has the job
    assert run_of(job("run: 'true'", more=wanted), service, tmp_path / "if", repository)["one"].result == "success"


def test_a_token_has_its_jobs_rights_until_the_job_ends(service: Service, tmp_path: Path) -> None:
    ask = """run: 'curl --silent --output /dev/null --write-out "%{http_code} " -H "Authorization: Bearer ${{ github.token }}" "$GITHUB_API_URL/repos/school/class/issues/1/comments?per_page=9&page=1"'"""
    for rights, code in (("{}", "403 "), ("{pull-requests: read}", "200 ")):
        folder = tmp_path / code
        assert run_of(job(ask, more=f"    permissions: {rights}\n"), service, folder)["one"].said == code
    assert service.tokens == {}


@pytest.mark.parametrize("jobs", [
    pytest.param(job("{run: 'true', working-directory: x}"), id="a step's key"),
    pytest.param(job("run: 'true'", more="    container: x\n"), id="a job's key"),
    pytest.param(job("uses: a/other@1"), id="an action"),
    pytest.param(job("run: 'echo ${{ inputs.x }}'"), id="a context"),
])  # fmt: skip
def test_what_the_stand_in_does_not_know_is_an_error(service: Service, tmp_path: Path, jobs: str) -> None:
    with pytest.raises(UnknownExpression):
        run_of(jobs, service, tmp_path / "run")
