#!/usr/bin/env bash
# Gradescope runs this once, as root, when it builds the container's image: Python with torch and the engine, and bubblewrap.
set -euo pipefail
root=${AUTOGRADER_ROOT:-/autograder}
cd "$root/source"
umask 022

python=${PYTHON:-$(sh tools/find-python)}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    sh tools/system-install python3.11 python3.11-venv # Ubuntu 22.04 has it beside its own 3.10
    python=$(sh tools/find-python)
fi
# Where the container may make namespaces, bubblewrap is the stronger box; where not, grading does without.
command -v bwrap >/dev/null || sh tools/system-install bubblewrap || echo "bubblewrap is not installed: level user grades"
EXTRAS='[]' sh tools/build-venv "$python" "$root/venv" "${TORCH_INDEX-@@torch_index}"
