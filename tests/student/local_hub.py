"""A Hugging Face hub on this machine: an HTTP server with one repository, and a cache."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@contextmanager
def serve_files(folder: Path, status: int = 200, missing_bytes: int = 0) -> Iterator[str]:
    """Serve the files of a folder, and yield the address of the server.

    Args:
        folder: The folder.
        status: The status of every answer. If it is not 200, answers have no file.
        missing_bytes: How many bytes of a file's end are not sent, although its length counts them.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.send_file(is_sent=False)

        def do_GET(self):
            self.send_file(is_sent=True)

        def send_file(self, *, is_sent: bool) -> None:
            path = folder / self.path.rpartition("/")[2]
            answer = status if path.is_file() else 404
            content = path.read_bytes() if answer == 200 else b""
            self.send_response(answer)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("ETag", f'"{sha256(content).hexdigest()}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.end_headers()
            if is_sent:
                self.wfile.write(content[: len(content) - missing_bytes])

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def fill_cache(home: Path, folder: Path) -> None:
    """Write the files of a folder to the hub's cache, as a download would do it.

    Args:
        home: The value of HF_HOME.
        folder: The folder.
    """
    repository = home / "hub" / "models--openai-community--gpt2"
    shutil.copytree(folder, repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
