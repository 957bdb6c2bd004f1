"""A tiny GPT-2 with random weights, in the files of the Hugging Face hub, and a real tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from manyheads.student.gpt2_weights import CONFIG, TOKENIZER, WEIGHTS
from manyheads.student.train_model import SENTENCE

if TYPE_CHECKING:
    from transformers import GPT2LMHeadModel

WORDS = [
    *SENTENCE.split(),
    *"Alice was beginning to get very tired of sitting by her sister".split(),
]
VOCABULARY = {word: number for number, word in enumerate(dict.fromkeys(["<unk>", *WORDS]))}
HEADS, CHANNELS, LAYERS, POSITIONS = 12, 60, 3, 48


def random_model(seed: int = 0) -> GPT2LMHeadModel:
    """Return a GPT-2 whose weights, also the biases, are random."""
    from transformers import GPT2Config, GPT2LMHeadModel  # a second, which only these tests need

    torch.manual_seed(seed)
    config = GPT2Config(
        n_layer=LAYERS,
        n_head=HEADS,
        n_embd=CHANNELS,
        n_positions=POSITIONS,
        vocab_size=len(VOCABULARY),
        bos_token_id=0,
        eos_token_id=0,
    )
    model = GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # transformers begins with biases of 0
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def save_files(folder: Path, model: GPT2LMHeadModel | None = None) -> Path:
    """Write config.json, tokenizer.json and model.safetensors, and return the folder."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    (model or random_model()).save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel(VOCABULARY, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / TOKENIZER))
    assert json.loads((folder / CONFIG).read_text())["model_type"] == "gpt2"
    assert (folder / WEIGHTS).exists()
    return folder
