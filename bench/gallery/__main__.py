"""What each silent misconception costs: some seventy small language models, each trained for twenty seconds.

python -m bench.gallery          train them all; docs/gallery.json, .md and .png say what came out; a quarter of an hour
python -m bench.gallery --draw   only make the page and the figure anew from docs/gallery.json
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .costs import Gallery


def main() -> int:
    """Exit status 0."""
    parser = argparse.ArgumentParser(prog="python -m bench.gallery", description="What silent misconceptions cost.")
    parser.add_argument("--draw", action="store_true", help="from docs/gallery.json, without training")
    options = parser.parse_args()
    from .costs import Gallery
    from .page import DATA, rewrite_page
    from .picture import draw

    if not options.draw:
        DATA.write_text(_measured().model_dump_json(indent=1) + "\n", encoding="utf-8")
    gallery = Gallery.model_validate_json(DATA.read_text(encoding="utf-8"))
    rewrite_page(gallery)
    draw(gallery)
    return 0


def _measured() -> Gallery:
    from ..peers.record import Record
    from .costs import Gallery
    from .runs import all_runs

    started = time.monotonic()
    runs = []
    with tempfile.TemporaryDirectory(prefix="bench_gallery_") as folder:
        for run in all_runs(Path(folder)):
            runs.append(run)
            last = f"{max(run.writing.items())[1]:.3f}" if run.writing else run.stopped
            print(f"{len(runs)}: {run.name}: {last}, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    runs.sort(key=lambda run: run.name)
    return Gallery(runs=tuple(runs), made=Record().beneath("python -m bench.gallery"))


if __name__ == "__main__":
    sys.exit(main())
