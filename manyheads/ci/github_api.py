"""The part of the hosting service's API that a report needs: one comment, one check run."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

from ..errors import CourseFault
from .annotations import Annotation, titled
from .comment import MARK, Conclusion
from .runner import PullRequest

SECONDS = 30.0
PAGE, PAGES = 100, 30  # comments
OURSELVES = "github-actions[bot]"  # the account of the workflow's token
NAME = "grade"


class ServiceError(CourseFault):
    """The service refused, or did not answer. The text ends with what to do next."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, so that the token is sent to no other address."""

    def redirect_request(self, *_: object) -> None:
        """Never."""


class Service:
    """Writes the comment and the check run of one pull request."""

    def __init__(self, address: str, token: str, asked: PullRequest) -> None:
        self._address, self._token, self._asked = address.rstrip("/"), token, asked
        self._opener = urllib.request.build_opener(_NoRedirect)

    def comment(self, body: str) -> None:
        """Update the comment of this pull request, or write it if there is none. Raises ServiceError."""
        marked = {"body": f"{MARK}\n{body}"}
        there = self._our_comment()
        if there is None:
            self._call("POST", f"issues/{self._asked.number}/comments", marked)
        else:
            self._call("PATCH", f"issues/comments/{there}", marked)

    def check_run(self, verdict: Conclusion, summary: str, found: Sequence[Annotation]) -> None:
        """Write a check run for the commit that was graded. Raises ServiceError."""
        output = {"title": verdict.title, "summary": summary, "annotations": [titled(each) for each in found]}
        about = {"name": NAME, "head_sha": self._asked.head, "status": "completed", "conclusion": verdict.conclusion}
        self._call("POST", "check-runs", {**about, "output": output})

    def head(self) -> str:
        """The current head commit of the pull request. Raises ServiceError."""
        return str(self._call("GET", f"pulls/{self._asked.number}")["head"]["sha"])

    def _our_comment(self) -> int | None:
        """The id of our comment, None if there is none. A comment of another account is not ours, even with our mark."""
        for page in range(1, PAGES + 1):
            comments = self._call("GET", f"issues/{self._asked.number}/comments?per_page={PAGE}&page={page}")
            for comment in comments:
                if comment["user"]["login"] == OURSELVES and str(comment["body"]).startswith(MARK):
                    return int(comment["id"])
            if len(comments) < PAGE:
                break
        return None

    def _call(self, method: str, path: str, data: object = None) -> Any:
        request = urllib.request.Request(
            f"{self._address}/repos/{self._asked.repository}/{path}",
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
                return json.load(answer)
        except urllib.error.HTTPError as error:
            rights = "permissions of job `report`" if error.code in (401, 403, 404) else "service's status page"
            raise ServiceError(f"{what} was refused ({error.code}). Next: look at the {rights}") from None
        except (OSError, ValueError) as error:
            raise ServiceError(f"{what} had no answer ({type(error).__name__}). Next: run the job again") from None
