"""Servers of the remote tests: one that can misbehave, nginx, and moto's S3.

`RangeServer` answers GET with ranges from memory, keeps a log of every request,
waits before each answer where it is told to, and has a repertoire of faults.
Run as a program it serves a folder, for benchmarks in other processes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

if TYPE_CHECKING:
    import pytest

# What obstore, boto and curl read from the environment.
AMBIENT = ("AWS_", "AZURE_", "GOOGLE_", "RUMI_")
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")

REASONS = {200: "OK", 206: "Partial Content", 403: "Forbidden", 404: "Not Found"}
MODIFIED = "Tue, 04 Aug 2026 10:00:00 GMT"
LATER = "Wed, 05 Aug 2026 10:00:00 GMT"
LOG_PATH = "/-/log"


def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no credentials, endpoints and proxies of the shell count."""
    for name in list(os.environ):
        if name.startswith(AMBIENT) or name.lower() in PROXIES:
            monkeypatch.delenv(name)


@dataclass
class Request:
    """One line of a server's log."""

    method: str
    path: str
    range: str | None
    status: int = 0
    sent: int = 0


@dataclass
class Object:
    """What a path holds."""

    data: bytes
    etag: str | None = None
    modified: str | None = MODIFIED


@dataclass
class Exchange:
    """A request that is being answered."""

    server: RangeServer
    connection: socket.socket
    path: str
    headers: dict[str, str]
    request: Request

    @property
    def object(self) -> Object:
        return self.server.objects[self.path]

    def span(self) -> tuple[int, int] | None:
        """The range asked for, the end exclusive."""
        value = self.headers.get("range")
        if value is None:
            return None
        first, _, last = value.removeprefix("bytes=").partition("-")
        return int(first), min(int(last) + 1, len(self.object.data))

    def send(self, status: int, headers: dict[str, object], body: bytes = b"") -> None:
        """Send head and body as one packet, so that no delayed acknowledgement is waited for."""
        self.request.status = status
        # Before anyone can have received it.
        self.request.sent += len(body)
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Whatever')}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode() + body)

    def about(self) -> dict[str, object]:
        """The headers that every good answer has."""
        found: dict[str, object] = {"Accept-Ranges": "bytes"}
        if self.object.etag is not None:
            found["ETag"] = self.object.etag
        if self.object.modified is not None:
            found["Last-Modified"] = self.object.modified
        return found

    def part(self) -> tuple[dict[str, object], bytes]:
        """Head and body of a good answer to a range."""
        start, stop = self.span() or (0, len(self.object.data))
        body = self.object.data[start:stop]
        head = {
            **self.about(),
            "Content-Range": f"bytes {start}-{stop - 1}/{len(self.object.data)}",
            "Content-Length": len(body),
        }
        return head, body


def answer(exchange: Exchange) -> bool:
    """Answer as a good server does; every answer returns whether the connection stays."""
    if exchange.path not in exchange.server.objects:
        return status(404)(exchange)
    found = exchange.object
    wanted = exchange.headers.get("if-match")
    if wanted not in (None, "*", found.etag):
        return status(412)(exchange)
    span = exchange.span()
    if span is None or exchange.request.method == "HEAD":
        head = {**exchange.about(), "Content-Length": len(found.data)}
        exchange.send(200, head, b"" if exchange.request.method == "HEAD" else found.data)
    elif span[0] >= len(found.data):
        exchange.send(416, {"Content-Range": f"bytes */{len(found.data)}", "Content-Length": 0})
    else:
        exchange.send(206, *exchange.part())
    return True


def accept(exchange: Exchange) -> bool:
    """Take whatever is sent."""
    exchange.send(200, {"ETag": '"new"', "Content-Length": 0})
    return True


def ignore_conditions(exchange: Exchange) -> bool:
    """Send the range, whatever If-Match says."""
    exchange.send(206, *exchange.part())
    return True


def status(code: int, text: str = "no") -> Callable[[Exchange], bool]:
    """Answer with a status and nothing else."""

    def fault(exchange: Exchange) -> bool:
        exchange.send(code, {"Content-Length": len(text)}, text.encode())
        return True

    return fault


def ignore_range(exchange: Exchange) -> bool:
    """Send the whole object with 200."""
    data = exchange.object.data
    exchange.send(200, {**exchange.about(), "Content-Length": len(data)}, data)
    return True


def endless_whole(exchange: Exchange) -> bool:
    """Send 200 and a body of 2 GB, or as much of it as the client takes."""
    exchange.send(200, {**exchange.about(), "Content-Length": 2 << 30})
    return _pour(exchange, lambda block: block)


def endless_part(exchange: Exchange) -> bool:
    """Send a head of 206 for the range asked for, and a body of 2 GB."""
    head, _ = exchange.part()
    exchange.send(206, {**head, "Content-Length": 2 << 30})
    return _pour(exchange, lambda block: block)


def endless_chunks(exchange: Exchange) -> bool:
    """Send a good head of 206, then chunks without an end."""
    head, body = exchange.part()
    del head["Content-Length"]
    exchange.send(206, {**head, "Transfer-Encoding": "chunked"})
    exchange.connection.sendall(b"%x\r\n%s\r\n" % (len(body), body))
    return _pour(exchange, lambda block: b"%x\r\n%s\r\n" % (len(block), block))


def _pour(exchange: Exchange, frame: Callable[[bytes], bytes]) -> bool:
    block = frame(bytes(1 << 20))
    for _ in range(2 << 10):
        exchange.connection.sendall(block)
        exchange.request.sent += len(block)
    return False


def cut_body(exchange: Exchange) -> bool:
    """Announce all, send half, hang up."""
    head, body = exchange.part()
    exchange.send(206, head, body[: len(body) // 2])
    return False


def short_part(exchange: Exchange) -> bool:
    """Send half of what was asked for, with a head that says so."""
    head, body = exchange.part()
    start = (exchange.span() or (0, 0))[0]
    body = body[: len(body) // 2]
    total = len(exchange.object.data)
    head["Content-Range"] = f"bytes {start}-{start + len(body) - 1}/{total}"
    head["Content-Length"] = len(body)
    exchange.send(206, head, body)
    return True


def lie_about_range(exchange: Exchange) -> bool:
    """Send half of what was asked for, with a head that says all."""
    head, body = exchange.part()
    body = body[: len(body) // 2]
    exchange.send(206, {**head, "Content-Length": len(body)}, body)
    return True


def shift_range(exchange: Exchange) -> bool:
    """Send a range one byte further on."""
    start, stop = exchange.span() or (0, 0)
    total = len(exchange.object.data)
    head = {
        **exchange.about(),
        "Content-Range": f"bytes {start + 1}-{stop}/{total}",
        "Content-Length": stop - start,
    }
    exchange.send(206, head, exchange.object.data[start + 1 : stop + 1].ljust(stop - start))
    return True


def no_content_range(exchange: Exchange) -> bool:
    """Send a good body of 206 without saying where it lies."""
    head, body = exchange.part()
    del head["Content-Range"]
    exchange.send(206, head, body)
    return True


def reset(exchange: Exchange) -> bool:
    """Break the connection without a word."""
    exchange.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


def hang_up(exchange: Exchange) -> bool:
    """Close the connection without a word."""
    return False


def garbage(exchange: Exchange) -> bool:
    """Say something that is not HTTP."""
    exchange.connection.sendall(b"\0\1\2 what?\r\n\r\n")
    return False


def slow_body(pause: float) -> Callable[[Exchange], bool]:
    """Send MiB by MiB with a pause before each."""

    def act(exchange: Exchange) -> bool:
        head, body = exchange.part()
        exchange.send(206, head)
        for start in range(0, len(body), 1 << 20):
            time.sleep(pause)
            exchange.connection.sendall(body[start : start + (1 << 20)])
        return True

    return act


def stall(exchange: Exchange) -> bool:
    """Say nothing."""
    exchange.server.ended.wait(30)
    return False


def stall_body(exchange: Exchange) -> bool:
    """Send half, then nothing."""
    head, body = exchange.part()
    exchange.send(206, head, body[: len(body) // 2])
    exchange.server.ended.wait(30)
    return False


@dataclass
class RangeServer:
    """A server on the loopback interface; use it as a context manager.

    Attributes
    ----------
    objects : dict
        By path, with its slash.
    latency : float
        Seconds before each answer.
    faults : dict
        By path, answers for its next requests; then it is served well.
    always : dict
        By path, the answer to every request.
    log : list of Request
        What was asked, in order.
    """

    objects: dict[str, Object] = field(default_factory=dict)
    latency: float = 0.0
    faults: dict[str, list[Callable[[Exchange], bool]]] = field(default_factory=dict)
    always: dict[str, Callable[[Exchange], bool]] = field(default_factory=dict)
    log: list[Request] = field(default_factory=list)

    def __enter__(self) -> RangeServer:
        self.ended = threading.Event()
        self.busiest = 0
        self.accepted = 0
        self._busy = 0
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.ended.set()
        self._socket.close()
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def put(self, path: str, data: bytes, **about: str | None) -> str:
        """Add an object; return its URL."""
        self.objects[path] = Object(data, **about)
        return self.url + path

    def ranges(self) -> list[tuple[int, int]]:
        """The ranges of all requests, the end exclusive."""
        found = []
        for request in self.log:
            first, _, last = (request.range or "=0-0").partition("=")[2].partition("-")
            found.append((int(first), int(last) + 1))
        return sorted(found)

    def _accept(self) -> None:
        while not self.ended.is_set():
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self.accepted += 1
                self._connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        buffer = b""
        try:
            while True:
                while b"\r\n\r\n" not in buffer:
                    received = connection.recv(1 << 16)
                    if not received:
                        return
                    buffer += received
                head, _, buffer = buffer.partition(b"\r\n\r\n")
                sent = re.search(rb"(?i)content-length: (\d+)", head)
                # The body of an upload is thrown away.
                while sent is not None and len(buffer) < int(sent[1]):
                    buffer += connection.recv(1 << 16)
                buffer = buffer[int(sent[1]) :] if sent is not None else buffer
                if not self._answer(connection, head.decode()):
                    return
        except OSError:
            return
        finally:
            with self._lock:
                self._connections.discard(connection)
            connection.close()

    def _answer(self, connection: socket.socket, head: str) -> bool:
        first, *lines = head.split("\r\n")
        method, target, _ = first.split(" ")
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        path = unquote(urlsplit(target).path)
        request = Request(method, target, headers.get("range"))
        exchange = Exchange(self, connection, path, headers, request)
        if path == LOG_PATH:
            body = json.dumps([vars(request) for request in self.log]).encode()
            self.log.clear()
            exchange.send(200, {"Content-Length": len(body)}, body)
            return True
        with self._lock:
            self._busy += 1
            self.busiest = max(self.busiest, self._busy)
            waiting = self.faults.get(path)
            act = waiting.pop(0) if waiting else self.always.get(path, answer)
            self.log.append(request)
        try:
            if self.latency:
                time.sleep(self.latency)
            return act(exchange)
        finally:
            with self._lock:
                self._busy -= 1


# --- Real servers


def nginx_program() -> str | None:
    """The nginx binary, which Debian keeps outside an ordinary user's path."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


NGINX = """
daemon off;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
    log_format requests '$request_method $request_uri $http_range $status $body_bytes_sent';
    access_log {folder}/access.log requests;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        root {root};
        location /private/ {{ deny all; }}
    }}
}}
"""


@dataclass
class Nginx:
    """nginx serving a folder on the loopback interface; use it as a context manager."""

    root: Path

    def __enter__(self) -> Nginx:
        program = nginx_program()
        if program is None:
            raise FileNotFoundError("nginx")
        self._folder = Path(tempfile.mkdtemp(prefix="rumi-nginx-"))
        self.port = free_port()
        config = self._folder / "nginx.conf"
        config.write_text(NGINX.format(folder=self._folder, port=self.port, root=self.root))
        self._process = subprocess.Popen(
            [program, "-c", str(config), "-e", str(self._folder / "error.log")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _wait_for(self.port, self._process)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(timeout=20)
        shutil.rmtree(self._folder)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def log(self) -> list[tuple[str, str, str, int, int]]:
        """Method, path, range, status and bytes of every request since the last call."""
        path = self._folder / "access.log"
        lines = path.read_text().splitlines() if path.exists() else []
        path.write_text("")
        self._process.send_signal(signal.SIGUSR1)
        found = []
        for line in lines:
            method, uri, span, code, sent = line.split(" ")
            found.append((method, uri, span, int(code), int(sent)))
        return found


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with status {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("the server does not answer")


class Moto:
    """moto's S3 in a thread, with a log; use it as a context manager.

    Attributes
    ----------
    log : list of str
        Method, path and status of every request, such as ``GET /bucket/a.rumi 206``.
    authorisations : list
        The Authorization header of every request, None where there was none.
    """

    def __enter__(self) -> Moto:
        from moto.server import ThreadedMotoServer

        self.log: list[str] = []
        self.authorisations: list[str | None] = []
        logger = logging.getLogger("werkzeug")
        self._before = (logger.level, logger.propagate, logger.handlers[:])
        logger.handlers, logger.propagate = [logging.NullHandler()], False
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._server.start()
        application = self._server._server.app
        self._server._server.app = lambda environ, start: self._note(application, environ, start)
        self.url = "http://{}:{}".format(*self._server.get_host_and_port())
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._server.stop()
        logger = logging.getLogger("werkzeug")
        level, logger.propagate, logger.handlers = self._before
        logger.setLevel(level)

    def _note(self, application: Any, environ: Any, start: Any) -> Any:
        """Be the application that the server calls, and write down what it answers."""

        def noted(status: str, *arguments: Any) -> Any:
            path = environ["PATH_INFO"].encode("latin-1").decode()
            self.log.append(f"{environ['REQUEST_METHOD']} {path} {status[:3]}")
            self.authorisations.append(environ.get("HTTP_AUTHORIZATION"))
            return start(status, *arguments)

        return application(environ, noted)

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Any:
        """Send a request as the owner; return the headers of the answer."""
        known = {
            "Authorization": "AWS4 Credential=x/y/us-east-1/s3/z",
            # Else the body is taken for a form, and not stored.
            "Content-Type": "application/octet-stream",
            **headers,
        }
        request = urllib.request.Request(self.url + quote(path), body or None, known)
        request.method = method
        with urllib.request.urlopen(request, timeout=20) as reply:
            return reply.headers

    def put(self, bucket: str, name: str, data: bytes, *, public: bool = False) -> str:
        """Add an object; return its ETag."""
        access = {"x-amz-acl": "public-read"} if public else {}
        etag: str = self.ask("PUT", f"/{bucket}/{name}", data, **access)["ETag"]
        return etag


# --- As a program


def main() -> None:
    """Serve a folder until stdin ends; the first line on stdout is the port."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    arguments = parser.parse_args()
    server = RangeServer(latency=arguments.latency)
    for path in arguments.folder.rglob("*"):
        if path.is_file():
            name = "/" + path.relative_to(arguments.folder).as_posix()
            server.objects[name] = Object(path.read_bytes(), f'"{path.stat().st_mtime_ns:x}"')
    with server:
        print(server.port, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
