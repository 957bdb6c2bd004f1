"""docs/wrong-view.svg: what the terminal shows a student who has viewed straight to
(B, n_head, T, head_dim).

python -m bench.terminal    runs the commands on an attempt of examples/submitted and draws what
                            they print
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

REPOSITORY = Path(__file__).resolve().parents[1]
PICTURE = REPOSITORY / "docs" / "wrong-view.svg"
ATTEMPT = Path("multi_head_attention") / "04_reshape_dance.py"
STUDENT = REPOSITORY / "examples" / "submitted" / "fatima"
COMMANDS = (("hint", "reshape_dance"), ("trace", "reshape_dance", "split_heads"))
COLUMNS = 92
THEME = TerminalTheme(  # every colour at 4.5 to 1 or more on the background
    (12, 12, 12),
    (217, 217, 217),
    [
        (*bytes.fromhex(colour),)
        for colour in "1a1a1a ff6482 98e024 fd971f 9d8cff ff6ebe 58d1eb c4c5b5".split()
    ],
    [
        (*bytes.fromhex(colour),)
        for colour in "a5a08c ff6482 98e024 e0d561 9d8cff ff6ebe 58d1eb f6f6ef".split()
    ],
)
FONTS = 'ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace'


def picture() -> str:
    """The SVG: text, in fonts that every system has, and nothing to load."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    for arguments, output in zip(COMMANDS, command_outputs(), strict=True):
        console.print(Text(f"$ course {' '.join(arguments)}", style="bold"))
        console.print(Text.from_ansi(output))
    return (
        console.export_svg(
            title="", theme=THEME, code_format=_without_fonts(), unique_id="terminal"
        )
        + "\n"
    )


def command_outputs() -> list[str]:
    """What the commands print, colours and all, in a folder as a student has it."""
    with tempfile.TemporaryDirectory(prefix="bench_terminal_") as temp_dir:
        folder = Path(temp_dir)
        shutil.copy(REPOSITORY / "course.yaml", folder)
        shutil.copytree(REPOSITORY / "exercises", folder / "exercises")
        shutil.copy(STUDENT / ATTEMPT, folder / "exercises" / ATTEMPT)
        # as where .venv is activated
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {
            "PYTHONPATH": str(REPOSITORY),
            "PATH": path,
        }
        environment |= {
            "FORCE_COLOR": "1",
            "COLUMNS": str(COLUMNS),
            "TERM": "xterm-256color",
            "TTY_INTERACTIVE": "0",
        }
        commands = ([sys.executable, "-m", "manyheads", *arguments] for arguments in COMMANDS)
        return [
            subprocess.check_output(command, cwd=folder, env=environment, text=True)
            for command in commands
        ]


def _without_fonts() -> str:
    """Rich's own format without the fonts that it would fetch from the network."""
    head, tail = CONSOLE_SVG_FORMAT.split("    @font-face", 1)
    tail = tail[tail.index("    .{unique_id}-matrix") :]
    return re.sub(r"<!--.*?-->\s*", "", head) + tail.replace("Fira Code, monospace", FONTS)


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
