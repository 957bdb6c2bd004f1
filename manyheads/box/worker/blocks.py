"""Build modules of the attempt, keep them, and call them, one call for each message.

`course gpt2` has a module of the attempt in each block of GPT-2, and calls each for every token.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from .answer_call import output_of, raised_by
from .messages import Blocks, InitBlock, Reply
from .nn_modules import build_module


class KeptBlocks:
    """Answers InitBlock, once for each block, and RunBlock."""

    def __init__(self) -> None:
        self._modules: list[nn.Module] = []

    def answer(self, namespace: Mapping[str, object], message: Blocks, source: str) -> Reply:
        """Return the reply to one message. Exceptions of the attempt are in the reply.

        The reply has the facts of the new module for InitBlock, and its output for RunBlock.

        Args:
            namespace: the names that the attempt defines.
            message: the message.
            source: the attempt's file name.
        """
        is_new = isinstance(message, InitBlock)
        try:
            if isinstance(message, InitBlock):
                built = build_module(namespace, message.build)
                self._modules.append(built.module)
                return Reply(modules=(built.facts(),))
            with torch.no_grad():
                return Reply((output_of(self._modules[message.number](message.x)),))
        except BaseException as error:  # a student's SystemExit is an answer too
            return Reply(raised=raised_by(error, "build" if is_new else "call", source))
