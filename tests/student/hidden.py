"""Recordings in which a check is left to the grading."""

from __future__ import annotations

from dataclasses import replace

from manyheads.diagnosis.recording import Fingerprints


def with_hidden(fingerprints: Fingerprints, id_: str) -> Fingerprints:
    """The same, without public calls for the check of that id."""
    content = fingerprints.content
    checks = tuple(c.model_copy(update={"asks": ()}) if c.id == id_ else c for c in content.checks)
    return replace(fingerprints, content=replace(content, checks=checks))
