"""What is proved of an attempt, and is not why its values are wrong, is told apart from what is."""

import pytest

from manyheads.diagnosis.recording_file import read
from tests.diagnosis.both_sides import Sides, names

Changes = dict[str, str]
UNLISTED = {"torch.softmax(scores, dim=-1)": "torch.softmax(scores.clamp(max=0.3), dim=-1)"}
PLAIN_DROPOUT = "self.dropout(torch.softmax(scores, dim=-1))"


@pytest.mark.parametrize(("changes", "also"), [
    pytest.param({PLAIN_DROPOUT: "torch.softmax(scores.clamp(max=0.3), dim=-1)"}, "dropout_missing",
        id="a dropout never used"),
    pytest.param({**UNLISTED, "weights @ v ": "weights @ v.detach() "}, "gradient_cut", id="a cut gradient"),
    pytest.param({**UNLISTED,
        "        mask = torch.ones": "        self.more = nn.Linear(2, 2)\n        mask = torch.ones"},
        "params_extra", id="a layer too many"),
])  # fmt: skip
def test_a_fault_beside_one_that_nobody_listed_is_told_apart(sides: Sides, changes: Changes, also: str) -> None:
    result = sides.graded("self_attention", changes)
    assert ([d.id for d in result.diagnosis], [d.id for d in result.also]) == ([], [also])


@pytest.mark.parametrize(("changes", "names"), [
    pytest.param({PLAIN_DROPOUT: "nn.functional.dropout(torch.softmax(scores, dim=-1))"},
        ["dropout_always_on", "dropout_rate_fixed"], id="chance decides the values"),
    pytest.param({"        T = x.shape[1]": "        x *= 3\n        T = x.shape[1]"}, ["input_mutated"],
        id="the argument is scaled"),
    pytest.param({PLAIN_DROPOUT: "torch.softmax(scores, dim=-1)"}, ["dropout_missing"], id="nothing else is wrong"),
])  # fmt: skip
def test_what_explains_the_values_is_named(sides: Sides, changes: Changes, names: list[str]) -> None:
    result = sides.graded("self_attention", changes)
    assert ([d.id for d in result.diagnosis], result.also) == (names, ()), [c.id for c in result.checks if c.score == 0]


def test_a_change_in_place_of_a_tensor_of_ones_own_is_no_changed_argument(sides: Sides) -> None:
    changes = {"    return torch.softmax(scores, dim=-1)": "    return torch.softmax(scores, dim=-1).mul_(1.0)"}
    result = sides.graded("attention_scores", changes)
    assert [c.outcome for c in result.checks if c.outcome != "passed"] == ["error"]
    assert (result.diagnosis, result.also) == ((), ())


def test_at_home_it_is_told_apart_where_a_recorded_call_is_asked_by_no_visible_check(sides: Sides) -> None:
    recorded = read(sides.exercise("sdpa_equivalence").fingerprints)
    assert len({call for check in recorded.checks for call in check.calls}) < len(recorded.calls)
    changes = {
        "        q, k, v = self.qkv(x)": "        x.mul_(1.5)\n        q, k, v = self.qkv(x)",
        "        y = y.transpose(1, 2)": "        y = y.clamp(max=0.01).transpose(1, 2)",
    }
    result = sides.home("sdpa_equivalence", changes)
    assert "input_mutated" in [d.id for d in (*result.diagnosis, *result.also)]


def test_at_home_the_order_of_a_students_own_layers_changes_no_name(sides: Sides) -> None:
    first = "self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)"
    second = "self.proj = nn.Linear(n_embd, n_embd, bias=False)"
    changes = {"self.proj(y)": "y", first: "self.first = 0", second: f"{second}\n        {first}"}
    assert names(sides.home("sdpa_equivalence", changes)) == ["proj_missing"]


@pytest.mark.parametrize("changes", [
    pytest.param({"return weights @ v": "return (weights @ v).cpu()"}, id="what is returned is on the CPU"),
    pytest.param({"~self.mask[:T, :T]": "~self.mask[:T, :T].cpu()"}, id="a mask is taken there"),
])  # fmt: skip
def test_at_home_a_fixed_device_is_proved_by_what_meets(sides: Sides, changes: Changes) -> None:
    assert names(sides.home("self_attention", changes)) == ["hard_coded_device"]
