"""A pull request against the real class repository, in which a student works on both assignments at once."""

import pytest

from tests.workflows.school import REPOSITORY, School

pytestmark = pytest.mark.journey

FIRST, SECOND = "multi_head_attention", "attention_in_practice"
HANDED_IN = {
    f"{SECOND}/04_kv_cache.py": "goran",
    f"{SECOND}/05_sliding_window.py": "goran",
    f"{SECOND}/03_rotary.ipynb": "kofi",
    f"{FIRST}/04_reshape_dance.py": "nils",
}


def test_each_assignment_is_graded_and_each_mistake_stands_at_its_line(real_school: School) -> None:
    files = {
        f"exercises/{name}": (REPOSITORY / "examples" / "submitted" / student / name).read_text(encoding="utf-8")
        for name, student in HANDED_IN.items()
    }
    jobs = real_school.run(real_school.pull_request(1, files))
    assert {id_: job.result for id_, job in jobs.items()} == {
        "cpu": "success", "approval": "skipped", "gpu": "skipped", "report": "success",
    }  # fmt: skip
    (said,) = real_school.service.comments_on(1)
    assert "### Multi\\-head attention: 6 / 40\n" in said
    assert "### Attention in practice: 8.5 / 37\n" in said
    assert "✗ CachedSelfAttention: With a cache, your mask is aligned to the first key instead\nof the last." in said
    assert "✗ rotate: A sign of your rotation is wrong." in said
    run = real_school.service.check_runs[-1]
    assert run["conclusion"] == "failure"
    told = {each["path"]: each for each in run["output"]["annotations"]}
    assert sorted(told) == sorted(name for name in files if "reshape" not in name)
    window = f"exercises/{SECOND}/05_sliding_window.py"
    line = files[window].splitlines()[told[window]["start_line"] - 1]
    # The second where the search for the line ran out of time, as it may on a busy machine.
    assert line.strip() in (
        "return (distance >= 0) & (distance <= window)",
        "def window_mask(T_q, T_k, window, device=None):",
    )
    assert "Your window is one key too wide or too narrow" in told[window]["message"]
