"""What can be read in a file: text in any encoding, whatever is packed; and what cannot is said to be so."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import tarfile
import zipfile
from collections.abc import Callable

import pytest
import safetensors.torch
import torch

from manyheads.authoring import file_contents
from manyheads.authoring.file_contents import UnreadableError, parts

TEXT = "y = √x  # “the root”\n"
NOISE = random.Random(0).randbytes(300)


def texts(content: bytes) -> dict[str, str]:
    return {part.name: part.text for part in parts("a", content)}


def zipped(content: bytes, name: str = "b/c.py") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("b") if hasattr(archive, "mkdir") else archive.writestr("b/", b"")
        archive.writestr(name, content)
    return out.getvalue()


def tarred(content: bytes, mode: str = "w") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        link = tarfile.TarInfo("b/link")
        link.type, link.linkname = tarfile.SYMTYPE, "c.py"
        archive.addfile(link)
        about = tarfile.TarInfo("b/c.py")
        about.size = len(content)
        archive.addfile(about, io.BytesIO(content))
    return out.getvalue()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_text_is_read_in_its_encoding(encoding: str) -> None:
    assert texts(TEXT.encode(encoding)) == {"a": ("\ufeff" if encoding == "utf-8-sig" else "") + TEXT}


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "latin-1"])
def test_text_is_read_where_nothing_names_its_encoding(encoding: str) -> None:
    assert texts("y = x  # so\n".encode(encoding)) == {"a": "y = x  # so\n"}


def test_text_of_western_europe_is_read() -> None:
    assert texts("y = x  # Übung\n".encode("latin-1")) == {"a": "y = x  # Übung\n"}


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, lambda c: gzip.compress(bz2.compress(c))])
def test_a_packed_file_is_read(pack: Callable[[bytes], bytes]) -> None:
    assert texts(pack(TEXT.encode())) == {"a": TEXT}


@pytest.mark.parametrize("pack", [zipped, tarred, lambda c: tarred(c, "w:gz"), lambda c: tarred(c, "w:xz")])
def test_every_file_of_an_archive_is_read(pack: Callable[[bytes], bytes]) -> None:
    found = texts(pack(TEXT.encode()))
    assert found.pop("a: b/", "") == ""
    assert found == {"a: b/c.py": TEXT}


def test_an_archive_in_an_archive_is_read() -> None:
    assert texts(zipped(tarred(TEXT.encode()), "c.tar"))["a: c.tar: b/c.py"] == TEXT


@pytest.mark.parametrize(
    "begins",
    [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"GIF89a", b"RIFF\xff\0\0\0WEBP", b"%PDF-1.7\n", b"\0\0\0\x20ftypisom"],
)
def test_of_pictures_and_slides_only_letters_are_read(begins: bytes) -> None:
    (text,) = texts(begins + NOISE + b"\0y = softmax(x)\0" + NOISE).values()
    assert "y = softmax(x)" in text
    assert len(text) < 100


def test_of_numbers_only_their_description_is_read() -> None:
    content = safetensors.torch.save({"w": torch.randn(99)}, metadata={"body": json.dumps({"hint": [TEXT, "so"]})})
    (part,) = parts("a", content)
    assert part.text == ""
    (inner,) = part.inner
    assert TEXT in inner


@pytest.mark.parametrize(
    ("content", "inner"),
    [
        pytest.param(json.dumps({"source": ["y =", " √x"]}), "y = √x", id="lines of a notebook"),
        pytest.param(json.dumps({"body": json.dumps({"a": "√x"})}), "√x", id="JSON in JSON"),
        pytest.param("<p><b>if</b> x &lt; <i>y</i></p>", "if x < y", id="a page"),
    ],
)
def test_what_a_text_shows_is_read_too(content: str, inner: str) -> None:
    (part,) = parts("a", content.encode())
    assert part.text == content
    assert inner in "".join(part.inner)


BROKEN = "a cannot be read: it is packed and cannot be unpacked"


def locked() -> bytes:
    """A zip file whose one file says that it is encrypted."""
    content = bytearray(zipped(TEXT.encode()))
    for begins, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.rindex(begins) + flags] |= 1
    return bytes(content)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(NOISE, "a cannot be read: it is neither text nor an archive", id="noise"),
        pytest.param(b"\xff\xfe" + NOISE, "a cannot be read: it is neither text nor an archive", id="noise with a mark"),
        pytest.param(b"7z\xbc\xaf\x27\x1c\0\4" + NOISE, "a cannot be read: it is neither", id="an archive of another kind"),
        pytest.param(zipped(NOISE), "a: b/c.py cannot be read: it is neither", id="noise in an archive"),
        pytest.param(locked(), BROKEN, id="an archive with a password"),
        pytest.param(gzip.compress(TEXT.encode())[:-9], BROKEN, id="a part of a packed file"),
        pytest.param(zipped(TEXT.encode())[:-9], BROKEN, id="a part of an archive"),
        pytest.param(tarred(TEXT.encode() * 99)[:1700], BROKEN, id="a part of a tape"),
        pytest.param(b"PK\3\4", BROKEN, id="only the beginning of an archive"),
        pytest.param(b"[" * 100_000, "a cannot be read: it is nested too deep", id="lists in lists"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named(content: bytes, says: str) -> None:
    with pytest.raises(UnreadableError) as error:
        texts(content)
    assert str(error.value).startswith(says)


def test_archives_end(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = TEXT.encode()
    for _ in range(file_contents.DEPTH):
        deep = gzip.compress(deep)
    assert texts(deep) == {"a": TEXT}
    with pytest.raises(UnreadableError, match="a cannot be read: too much is packed in it"):
        texts(gzip.compress(deep))
    monkeypatch.setattr(file_contents, "LIMIT", 1000)
    assert texts(gzip.compress(b"x" * 1000)) == {"a": "x" * 1000}
    with pytest.raises(UnreadableError, match="a cannot be read: too much is packed in it"):
        texts(gzip.compress(b"x" * 1001))
