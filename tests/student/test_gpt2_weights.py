"""Reading the files of GPT-2, and the sentence about each wrong file."""

import json
import shutil

import huggingface_hub
import pytest
import torch
from safetensors.torch import load_file, save_file

from manyheads.course import CourseError
from manyheads.student.gpt2_weights import CONFIG, TOKENIZER, WEIGHTS, fetch
from tests.student.gpt2_files import VOCABULARY, save_files


@pytest.fixture(scope="module")
def saved_files(tmp_path_factory):
    """Return a folder with the files of a tiny GPT-2."""
    return save_files(tmp_path_factory.mktemp("files"))


@pytest.fixture
def cached_gpt2(saved_files, tmp_path, monkeypatch):
    """Return a copy of the folder, which stands for the hub's cache."""
    folder = shutil.copytree(saved_files, tmp_path / "snapshots" / "commit")
    monkeypatch.setattr(
        huggingface_hub, "try_to_load_from_cache", lambda repository, name: str(folder / name)
    )
    return folder


def change_weights(cached_gpt2, change) -> None:
    """Write the weights as the function `change` returns them, without those that are None."""
    tensors = {
        name: change(name, tensor) for name, tensor in load_file(cached_gpt2 / WEIGHTS).items()
    }
    save_file({name: t for name, t in tensors.items() if t is not None}, cached_gpt2 / WEIGHTS)


def test_names_without_a_prefix_and_masks_are_read(cached_gpt2):
    expected = fetch(pytest.fail).model.weights
    tensors = load_file(cached_gpt2 / WEIGHTS)
    masks = {"h.0.attn.bias": torch.ones(1, 1, 8, 8), "h.0.attn.masked_bias": torch.tensor(-1e4)}
    plain = {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}
    assert plain.keys() != tensors.keys()
    save_file({**plain, **masks}, cached_gpt2 / WEIGHTS)
    actual = fetch(pytest.fail).model.weights
    assert actual.keys() == expected.keys()
    assert all(torch.equal(actual[name], expected[name]) for name in expected)


def test_a_missing_weight_is_named(cached_gpt2):
    change_weights(cached_gpt2, lambda name, tensor: None if name.endswith("ln_f.bias") else tensor)
    with pytest.raises(CourseError) as fault:
        fetch(pytest.fail)
    assert str(fault.value) == (
        f"{cached_gpt2 / WEIGHTS} is not GPT-2's: ValueError: it has no ln_f.bias. "
        f"Next: rm -r {cached_gpt2.parents[1]}"
    )


def test_a_weight_of_another_shape_is_named(cached_gpt2):
    change_weights(cached_gpt2, lambda name, tensor: tensor[:5] if "wpe" in name else tensor)
    with pytest.raises(CourseError, match=r"wpe\.weight has the shape \(5, 60\), not \(48, 60\)"):
        fetch(pytest.fail)


def test_another_architecture_is_named(cached_gpt2):
    config = json.loads((cached_gpt2 / CONFIG).read_text()) | {"model_type": "llama"}
    (cached_gpt2 / CONFIG).write_text(json.dumps(config))
    with pytest.raises(CourseError, match="ValueError: model_type is 'llama', not 'gpt2'"):
        fetch(pytest.fail)


def test_a_tokenizer_with_more_tokens_than_the_model_is_refused(cached_gpt2):
    tokenizer = json.loads((cached_gpt2 / TOKENIZER).read_text())
    tokenizer["model"]["vocab"]["further"] = len(VOCABULARY)
    (cached_gpt2 / TOKENIZER).write_text(json.dumps(tokenizer))
    with pytest.raises(CourseError, match="ValueError: it has 21 tokens, and the model has 20"):
        fetch(pytest.fail)


def test_a_file_that_is_no_tokenizer_is_named(cached_gpt2):
    (cached_gpt2 / TOKENIZER).write_text("<html>")
    with pytest.raises(CourseError, match=r"tokenizer\.json is not GPT-2's: Exception: "):
        fetch(pytest.fail)
