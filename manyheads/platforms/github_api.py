"""Call the hosting service's API for one repository, with the token of a job."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

from ..errors import CourseFault

SECONDS = 30.0
PAGE, PAGES = 100, 30  # entries of a list in one answer, and the most answers that are read


class ServiceError(CourseFault):
    """The service refused, or did not answer. The text ends with what to do next."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, so that the token is sent to no other address."""

    def redirect_request(self, *_: object) -> None:
        """Never."""


class Api:
    """The part of the API that is about one repository."""

    def __init__(self, address: str, token: str, repository: str) -> None:
        self._address, self._token, self._repository = address.rstrip("/"), token, repository
        self._opener = urllib.request.build_opener(_NoRedirect)

    def pages(self, path: str) -> Iterator[Any]:
        """Yield the entries of a list, over all pages. Raises ServiceError."""
        for page in range(1, PAGES + 1):
            entries = self.call("GET", f"{path}{'&' if '?' in path else '?'}per_page={PAGE}&page={page}")
            yield from entries
            if len(entries) < PAGE:
                break

    def call(self, method: str, path: str, data: object = None) -> Any:
        """Return the service's answer; None where it has no content. Raises ServiceError."""
        request = urllib.request.Request(
            f"{self._address}/repos/{self._repository}/{path}",
            method=method,
            data=None if data is None else json.dumps(data).encode(),
            headers={
                "Authorization": f"Bearer {self._token}",
                "Accept": "application/vnd.github+json",
                "Content-Type": "application/json",
                "X-GitHub-Api-Version": "2022-11-28",
                "User-Agent": "manyheads",
            },
        )
        what = f"{method} …/{path.split('?')[0]}"
        try:
            with self._opener.open(request, timeout=SECONDS) as answer:
                content = answer.read()
                return json.loads(content) if content else None
        except urllib.error.HTTPError as error:
            rights = "this job's permissions" if error.code in (401, 403, 404) else "the service's status page"
            raise ServiceError(f"{what} was refused ({error.code}). Next: look at {rights}") from None
        except (OSError, ValueError) as error:
            raise ServiceError(f"{what} had no answer ({type(error).__name__}). Next: run the job again") from None
