"""Draw the figures of all lessons anew, beside their sources; `course release` then takes them to the exercises.

python -m bench.figures
"""

from __future__ import annotations

import sys

from manyheads.whole import write_whole

from .lessons import all_figures


def main() -> int:
    """Exit status 0."""
    for path, svg in all_figures():
        changed = not path.exists() or path.read_text(encoding="utf-8") != svg
        if changed:
            path.parent.mkdir(exist_ok=True)
            write_whole(path, svg.encode())
        print(f"{'drawn' if changed else 'as it was'}: {path.name}")
    print("Next: course release")
    return 0


if __name__ == "__main__":
    sys.exit(main())
