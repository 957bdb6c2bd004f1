"""Build the site. Run: make docs, or python -m docs.site [FOLDER]."""

from __future__ import annotations

import sys
from pathlib import Path

from .build import SiteFault, build

if __name__ == "__main__":
    try:
        print(build(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(".cache/docs/site")))
    except SiteFault as fault:
        sys.exit(str(fault))
