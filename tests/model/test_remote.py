"""Files behind URLs, against servers on loopback: verdicts are those of local files, and no server is believed."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pytest

from trajconform import kit
from trajconform.model import remote
from trajconform.model.location import redacted, split_zip
from trajconform.mrec.reader import open_mrec
from trajconform.otj.reader import open_otj
from trajconform.report.findings import check_file

VECTORS = kit.root() / "vectors"
OTJ = VECTORS / "otj" / "files" / "worked-example.otj"
GROWTH = VECTORS / "mrec" / "stores" / "growth.mrec"


class Server(http.server.ThreadingHTTPServer):
    """Serves a folder with ranges; ``mode`` says what it does wrong, ``faults`` how often it still answers 503."""

    mode = ""
    faults = 0
    root = VECTORS


class Handler(http.server.SimpleHTTPRequestHandler):
    server: Server

    def log_message(self, *_: object) -> None:
        pass

    def translate_path(self, path: str) -> str:
        self.directory = str(self.server.root)
        return super().translate_path(path)

    def do_HEAD(self) -> None:
        path = Path(self.translate_path(self.path))
        if self.server.mode == "lies" and path.is_file():
            self.send_response(200)
            self.send_header("Content-Length", str(path.stat().st_size - 100))
            self.end_headers()
            return
        super().do_HEAD()

    def do_GET(self) -> None:
        path, mode = Path(self.translate_path(self.path)), self.server.mode
        if self.server.faults:
            self.server.faults -= 1
            self.send_error(503)
            return
        if mode == "forbidden":
            self.send_error(403)
            return
        asked = self.headers.get("Range")
        if asked is None or mode == "no ranges" or not path.is_file():
            super().do_GET()
            return
        data = path.read_bytes()
        first, last = (int(n) for n in asked.removeprefix("bytes=").split("-"))
        if first >= len(data):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(data)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        piece = data[first : last + 1]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{first + len(piece) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(piece)))
        self.end_headers()
        self.wfile.write(piece[: len(piece) // 2] if mode == "breaks off" else piece)
        if mode == "breaks off":
            self.close_connection = True


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as one:
        threading.Thread(target=one.serve_forever, daemon=True).start()
        yield one
        one.shutdown()


@pytest.fixture
def url(server: Server, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], str]:
    monkeypatch.setattr(remote, "FIRST_WAIT", 0.01)
    return lambda path: f"http://127.0.0.1:{server.server_port}/{path.relative_to(VECTORS).as_posix()}"


def test_secrets_are_not_written() -> None:
    told = redacted("https://me:p@ss@host/a.otj?X-Amz-Signature=s")
    assert told == "https://***@host/a.otj?***"
    assert "secret" not in redacted("https://secret:secret@host/x?secret")
    assert split_zip("zip://a.otj::s3://b/c.zip").inside == "a.otj"


@pytest.mark.parametrize("golden", [OTJ, GROWTH, VECTORS / "otj" / "files"], ids=lambda path: path.name)
def test_findings_over_http_are_those_of_the_file(url: Callable[[Path], str], golden: Path) -> None:
    files = sorted(golden.glob("*.otj")) if golden.name == "files" else [golden]
    for file in files:
        here, there = check_file(file, None), check_file(url(file), None)
        assert there.problem == "" and there.violations == here.violations


def test_reading_over_http_gives_the_frames_of_the_file(url: Callable[[Path], str]) -> None:
    with open_otj(url(OTJ)) as there, open_otj(OTJ) as here:
        assert there.reply() == here.reply()
    with open_mrec(url(GROWTH)) as there, open_mrec(GROWTH) as here:
        assert [repr(frame) for frame in there] == [repr(frame) for frame in here]


def test_a_fault_that_passes_is_waited_for(server: Server, url: Callable[[Path], str]) -> None:
    server.faults = 3
    assert check_file(url(OTJ), None).document()["conforms"]


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("lies", "contradicts itself"),
        ("forbidden", "403"),
        ("breaks off", "at each of 5 attempts"),
        ("no ranges", ""),
    ],
)
def test_what_a_server_does_wrong_is_no_finding(
    server: Server, url: Callable[[Path], str], mode: str, words: str
) -> None:
    server.mode = mode
    found = check_file(url(OTJ) + "?signature=secret", None)
    assert not found.violations and "secret" not in str(found)
    if mode == "no ranges":  # the whole file is not more than was asked for
        assert found.document()["conforms"]
    else:
        assert words in found.problem


def test_memory_and_what_is_not_there() -> None:
    memory = fsspec.filesystem("memory")
    memory.put(str(GROWTH), "/t/growth.mrec", recursive=True)
    memory.put(str(OTJ), "/t/a.otj")
    assert check_file("memory://t/growth.mrec", None).document()["conforms"]
    assert check_file("memory://t/a.otj", None).document()["conforms"]
    for name in ("b.otj", "b.mrec"):
        assert "no such file or folder" in check_file(f"memory://t/{name}", None).problem
