"""A second device, "second", for a machine that has none: real tensors that mix with none of the CPU's.

It computes as the CPU does, so it shows where a tensor is made or left on the wrong device, and what mixed precision
does, and nothing of a GPU's numbers, speed or memory.
"""

from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils.cpp_extension import load

NAME = "second"


def start(build: Path) -> None:
    """Add the device to this process for good. Compiles into that folder: most of a minute.

    Raises OSError or RuntimeError where there is no compiler.
    """
    source = Path(__file__).with_name("second_device.cpp")
    extension = load("second_device", [str(source)], build_directory=str(build), extra_cflags=["-O1"])
    torch.utils.rename_privateuse1_backend(NAME)
    torch._register_device_module(NAME, _module())
    extension.start()
    torch.UntypedStorage.clone = _clone


def _module() -> ModuleType:
    """What torch asks of `torch.second`."""
    module: Any = ModuleType(NAME)
    module.is_available = module.is_initialized = lambda: True
    module._is_in_bad_fork = lambda: False
    module.device_count, module.current_device = lambda: 1, lambda: 0
    module.get_amp_supported_dtype = lambda: [torch.float16, torch.bfloat16]
    module.manual_seed_all = lambda seed: None
    module.get_rng_state = lambda device=None: torch.get_rng_state()
    module.set_rng_state = lambda state, device=None: None
    return module


_clone_storage = torch.UntypedStorage.clone


def _clone(storage: torch.UntypedStorage) -> torch.UntypedStorage:
    """torch's own way goes by a tensor of the CPU."""
    if storage.device.type != NAME:
        return _clone_storage(storage)
    whole = torch.empty(0, dtype=torch.uint8, device=NAME).set_(storage, 0, (storage.nbytes(),), (1,))
    return whole.clone().untyped_storage()
