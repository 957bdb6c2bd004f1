"""The stand-in runner: expressions, rights and secrets as the service's own has them, and no guess."""

import pytest

from tests.workflows.hosted.runner import Run, evaluate, fill, holds
from tests.workflows.hosted.service import Service

KNOWN = {
    "vars": {"GPU": "box", "EMPTY": ""},
    "needs": {"cpu": {"outputs": {"hygiene": "clean"}}},
    "github": {"event": {"pull_request": {"number": 7}}},
    "cancelled()": False,
    "success()": True,
}


@pytest.mark.parametrize(("expression", "value"), [
    ("vars.MISSING.deeper", ""),
    ("github.event.pull_request.number || github.event.inputs.pull_request", 7),
    ("needs.cpu.outputs.hygiene == 'clean' && vars.GPU != ''", True),
    ("vars.EMPTY || 'other'", "other"),
    ("!(vars.EMPTY || cancelled())", True),
])  # fmt: skip
def test_an_expression_has_the_value_that_the_service_gives_it(expression, value):
    assert evaluate(expression, KNOWN) == value


@pytest.mark.parametrize("unknown", ["vars.GPU =", "(vars.GPU", "contains(vars.GPU, 'b')", "secrets.KEY", "vars.GPU < 3",
    'vars.GPU == "box"', "failure()", "vars.GPU }} == 'box'"])  # fmt: skip
def test_what_the_stand_in_does_not_know_is_an_error(unknown):
    with pytest.raises((AssertionError, KeyError, SyntaxError)):
        holds(unknown, KNOWN, well=True)
    with pytest.raises(AssertionError):
        fill("${{ needs.cpu }}", KNOWN)


# A step that reads comments with its job's token, says what it has of the secret, and fails.
ASK = """
curl --silent --output /dev/null --write-out "%{http_code} " -H "Authorization: Bearer ${{ github.token }}" \\
    "$GITHUB_API_URL/repos/school/class/issues/1/comments?per_page=9&page=1"
echo "$KEY"
false | true
"""


@pytest.mark.parametrize(("environment", "rights", "said"), [
    ("grading", {"pull-requests": "read"}, "200 s3cret\n"),
    ("other", {}, "403 \n"),
])  # fmt: skip
def test_a_token_has_its_jobs_rights_and_a_secret_is_in_its_environment_alone(tmp_path, environment, rights, said):
    steps = [
        {"env": {"KEY": "${{ secrets.KEY }}"}, "run": ASK},
        {"run": "echo not here"},
        {"if": "${{ !cancelled() }}", "run": 'echo "and $KEY"'},
    ]
    job = {"runs-on": "x", "permissions": rights, "environment": {"name": environment}, "steps": steps}
    with Service(tmp_path / "repositories") as service:
        holds = {"grading": {"secrets": {"KEY": "s3cret"}, "vars": {}}}
        run = Run({"jobs": {"one": job}}, "push", {}, service, tmp_path / "run", environments=holds)
        done = run.whole()["one"]
        assert (done.said, done.result) == (f"{said}exit status 1\nand \n", "failure")
        assert service.tokens == {}
