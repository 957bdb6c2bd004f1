"""What dates and humans decide about results: course.yaml's late policy and overrides.yaml, applied in one place."""

from .decisions import Decisions
from .overrides import NAME

__all__ = ["NAME", "Decisions"]
