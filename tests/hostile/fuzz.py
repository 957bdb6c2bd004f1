"""A long search for bytes that break a reader, guided by coverage. By hand: it needs `pip install atheris`.

mkdir found
python tests/hostile/fuzz.py reply found tests/hostile/corpus -max_total_time=600
python tests/hostile/fuzz.py notebook found exercises/multi_head_attention -max_total_time=600

It starts from the folders that it is given, and crashes on what it finds. Keep such a file in tests/hostile/corpus/,
where test_fuzz_replies.py reads it for ever after.
"""

import sys

import atheris

with atheris.instrument_imports(include=["manyheads.box.replies", "manyheads.submission.read", "safetensors", "json"]):
    from manyheads.box.replies import BadReply, read_reply
    from manyheads.submission.read import NotebookError, read_notebook

import contextlib

from manyheads.box.worker.answers import Reply


def reply(data: bytes) -> None:
    """Any bytes are a valid reply or a BadReply."""
    with contextlib.suppress(BadReply):
        assert isinstance(read_reply(data), Reply)


def notebook(data: bytes) -> None:
    """Any text is a notebook's source or a NotebookError."""
    with contextlib.suppress(NotebookError, UnicodeDecodeError):
        assert isinstance(read_notebook(data.decode()).source, str)


if __name__ == "__main__":
    reader = {"reply": reply, "notebook": notebook}[sys.argv.pop(1)]
    atheris.Setup(sys.argv, reader)
    atheris.Fuzz()
