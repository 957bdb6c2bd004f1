"""Fetch the published weights and the tokenizer of GPT-2 small from the Hugging Face hub.

The files stay in the hub's own cache. A download is announced before it starts. Each error
becomes one sentence with the next step.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from ..checks.explain_exceptions import sanitize
from ..course import CourseError
from ..files import describe_error
from .gpt2_model import GPT2, Sizes

if TYPE_CHECKING:
    from tokenizers import Tokenizer

REPOSITORY = "openai-community/gpt2"
CONFIG, TOKENIZER, WEIGHTS = "config.json", "tokenizer.json", "model.safetensors"


@dataclass(frozen=True)
class PublishedGPT2:
    """GPT-2 and its tokenizer."""

    model: GPT2
    tokenizer: Tokenizer


def fetch(tell: Callable[[str], object]) -> PublishedGPT2:
    """Return the published model, from the hub's cache, or after a download.

    Args:
        tell: Announces the download.

    Raises:
        CourseError: The extra is not installed, the download fails, or a file cannot be read or
            has the wrong content.
    """
    try:
        import huggingface_hub
        import tokenizers
    except ModuleNotFoundError as error:
        raise CourseError(
            f"GPT-2 needs the package {error.name}, which this Python does not have. "
            "Next: pip install 'manyheads[gpt2]' -c constraints.txt"
        ) from None
    names = (CONFIG, TOKENIZER, WEIGHTS)  # the weights last, as they take longest
    paths = [huggingface_hub.try_to_load_from_cache(REPOSITORY, name) for name in names]
    if not all(isinstance(path, str) for path in paths):
        with _failed_download_as_fault():
            url = huggingface_hub.hf_hub_url(REPOSITORY, WEIGHTS)
            size = huggingface_hub.get_hf_file_metadata(url).size or 0  # without the hub's retries
            tell(f"GPT-2 is not on this machine yet: {size / 1e6:.0f} MB are downloaded once.")
            paths = [huggingface_hub.hf_hub_download(REPOSITORY, name) for name in names]
    config_path, tokenizer_path, weights_path = (Path(str(path)) for path in paths)
    with _wrong_file_as_fault(config_path):
        sizes = read_sizes(config_path)
    with _wrong_file_as_fault(weights_path):
        model = read_model(sizes, weights_path)
    with _wrong_file_as_fault(tokenizer_path):
        tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_path))
        if (count := tokenizer.get_vocab_size()) > sizes.vocab_size:
            raise ValueError(f"it has {count} tokens, and the model has {sizes.vocab_size}")
    return PublishedGPT2(model, tokenizer)


@contextmanager
def _failed_download_as_fault() -> Iterator[None]:
    """Turn an exception of the hub into a CourseError.

    The hub passes on exceptions of several libraries, so all types are caught. The cause of
    an exception about the hub's cache is the failed request.
    """
    from huggingface_hub.constants import HF_HUB_CACHE
    from huggingface_hub.errors import HfHubHTTPError

    try:
        yield
    except Exception as error:
        causes = [error, *filter(None, [error.__cause__])]
        status_codes = [e.response.status_code for e in causes if isinstance(e, HfHubHTTPError)]
        numbers = {e.errno for e in causes if isinstance(e, OSError)}
        problem = f"GPT-2 could not be downloaded ({sanitize(describe_error(causes[-1]))})"
        next_step = "check the network"
        if numbers & {errno.ENOSPC, errno.EDQUOT}:
            problem = f"the disk of {HF_HUB_CACHE} is full, and GPT-2 needs 548 MB there"
            next_step = "make room there, or set HF_HOME to a folder on another disk"
        elif numbers & {errno.EACCES, errno.EPERM, errno.EROFS}:
            problem = f"{HF_HUB_CACHE} may not be written, and GPT-2 is kept there"
            next_step = "set HF_HOME to a folder of yours"
        elif status_codes:
            problem = f"{REPOSITORY} could not be downloaded: the server answers {status_codes[0]}"
            next_step = "try it later, or ask your instructor for the files"
        raise CourseError(f"{problem}. Next: {next_step}, then: course gpt2") from None


@contextmanager
def _wrong_file_as_fault(path: Path) -> Iterator[None]:
    """Turn an exception about the content of a file into a CourseError.

    The readers of safetensors and tokenizers have their own types of exceptions. If a file cannot
    be read, its content can still be right.
    """
    try:
        yield
    except (OSError, MemoryError) as error:
        raise CourseError(
            f"{path} cannot be read ({describe_error(error)}). Next: course gpt2"
        ) from None
    except Exception as error:
        # the hub would take the same content again from another folder of its cache
        folder = quote(str(path.parents[2]))
        raise CourseError(
            f"{path} is not GPT-2's: {describe_error(error)}. Next: rm -r {folder}"
        ) from None


def read_sizes(path: Path) -> Sizes:
    """Return the sizes in a config.json. Raises ValueError if it is of another architecture."""
    config = json.loads(path.read_text(encoding="utf-8"))
    for name, expected in (("model_type", "gpt2"), ("activation_function", "gelu_new")):
        if config.get(name) != expected:
            raise ValueError(f"{name} is {config.get(name)!r}, not {expected!r}")
    names = ("n_layer", "n_head", "n_embd", "n_positions", "vocab_size")
    return Sizes(*(config[name] for name in names))


def read_model(sizes: Sizes, path: Path) -> GPT2:
    """Return the model with the weights of a safetensors file.

    Each name may begin with "transformer.". Other tensors in the file, such as masks, are ignored.
    Raises ValueError if a weight is missing or has another shape.
    """
    from safetensors.torch import load_file

    tensors = {
        name.removeprefix("transformer."): tensor for name, tensor in load_file(path).items()
    }
    weights = {}
    for name, shape in sizes.shapes().items():
        if name not in tensors:
            raise ValueError(f"it has no {name}")
        if tensors[name].shape != shape:
            raise ValueError(f"{name} has the shape {tuple(tensors[name].shape)}, not {shape}")
        weights[name] = tensors[name].float()
    return GPT2(sizes, weights)
