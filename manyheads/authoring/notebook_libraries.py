"""jupytext and nbformat, imported in a third of the time.

Both import jsonschema, which imports `rfc3987_syntax` where that is installed (Jupyter installs it). That builds the
grammar of internationalised web addresses as it is imported: one to two seconds of every process. No notebook's schema
has such an address, so here it counts as not installed, which jsonschema allows.
"""

from __future__ import annotations

import sys
from typing import cast

GRAMMAR = "rfc3987_syntax"

_known = GRAMMAR in sys.modules
if not _known:
    cast("dict[str, None]", sys.modules)[GRAMMAR] = None  # what Python itself writes there to refuse an import
try:
    import jupytext
    import nbformat
    from nbformat import NotebookNode
    from nbformat.v4 import new_code_cell
finally:
    if not _known:
        del sys.modules[GRAMMAR]

__all__ = ["NotebookNode", "jupytext", "nbformat", "new_code_cell"]
