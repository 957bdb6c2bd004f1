"""A stand-in for pip, which takes more than a second each time: `install` of what is there already, or of one wheel.

It knows the options that our workflow uses, and refuses a wheel whose hash is another, as pip does.
"""

import hashlib
import io
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path
from urllib.parse import unquote, urlsplit

SWITCHES = {"--disable-pip-version-check", "--quiet", "--no-deps", "--force-reinstall"}


def install(requirement: str) -> None:
    """Into the folder that this file stands in."""
    name, _, url = requirement.partition(" @ ")
    if not url:
        version(name)  # raises where it is not there
        return
    parts = urlsplit(url)
    wheel = Path(unquote(parts.path)).read_bytes()
    if parts.fragment != f"sha256={hashlib.sha256(wheel).hexdigest()}":
        sys.exit(f"{name}: the hash is another")
    zipfile.ZipFile(io.BytesIO(wheel)).extractall(Path(__file__).parent)


if __name__ == "__main__":
    given = [argument for argument in sys.argv[1:] if argument not in SWITCHES]
    if "--constraint" in given:
        at = given.index("--constraint")
        del given[at : at + 2]
    if given[0] != "install" or any(each.startswith("-") for each in given):
        sys.exit(f"no stand-in for pip {given}")
    for each in given[1:]:
        install(each)
