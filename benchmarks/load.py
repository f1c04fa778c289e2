"""A bounded load on a server of this machine: `wrk` where it is installed, else this module in another process."""

from __future__ import annotations

import re
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks.machine import PROJECT

CONNECTIONS = 8
"""Kept alive, each with one request in flight."""
MOST_REQUESTS = 1_000_000


def measure_rate(port: int, path: str, body: bytes, seconds: float) -> float:
    """Answers per second to POST; raises RuntimeError where any is not a 2xx."""
    with tempfile.TemporaryDirectory() as folder:
        posted = Path(folder) / "body"
        posted.write_bytes(body)
        wrk = shutil.which("wrk")
        if wrk and seconds >= 1:  # it counts whole seconds
            return _run_wrk(wrk, Path(folder), f"http://127.0.0.1:{port}{path}", body, seconds)
        command = [sys.executable, "-m", "benchmarks.load", str(port), path, str(posted), str(seconds)]
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            raise RuntimeError(done.stderr)
        return float(done.stdout)


def name_generator(seconds: float) -> str:
    """What `measure_rate` uses."""
    return f"{'wrk' if shutil.which('wrk') and seconds >= 1 else 'a Python client'}, {CONNECTIONS} connections"


def _run_wrk(wrk: str, folder: Path, url: str, body: bytes, seconds: float) -> float:
    script = folder / "post.lua"
    text = body.decode().replace("\\", "\\\\").replace("'", "\\'")
    script.write_text(
        f"wrk.method = 'POST'\nwrk.headers['Content-Type'] = 'application/json'\nwrk.body = '{text}'\n",
        encoding="utf-8",
    )
    command = [wrk, "-t1", f"-c{CONNECTIONS}", f"-d{round(seconds)}s", "-s", str(script), url]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
    rate = re.search(r"Requests/sec:\s+([\d.]+)", output)
    if rate is None or "Non-2xx" in output:
        raise RuntimeError(output)
    return float(rate.group(1))


def drive(port: int, path: str, body: bytes, seconds: float) -> float:
    """Answers per second, counted by this process over its own sockets; raises RuntimeError for any but a 2xx."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    request = head.encode() + b"\r\n\r\n" + body
    with ExitStack() as stack:
        connect = partial(socket.create_connection, ("127.0.0.1", port), timeout=10)
        connections = [stack.enter_context(connect()) for _ in range(CONNECTIONS)]
        received = {connection: bytearray() for connection in connections}
        selector = stack.enter_context(selectors.DefaultSelector())
        for connection in connections:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(connection, selectors.EVENT_READ, connection)
            connection.sendall(request)
        answered, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds and answered < MOST_REQUESTS:
            for key, _ in selector.select(1):
                if _receive(key.data, received[key.data]):
                    answered += 1
                    key.data.sendall(request)
        return answered / (time.perf_counter() - began)


def _receive(connection: socket.socket, received: bytearray) -> bool:
    """Take what has come; whether that completes an answer, whose bytes are then dropped."""
    came = connection.recv(65536)
    if not came:
        raise RuntimeError("the server closed a connection in use")
    received.extend(came)
    whole = _is_whole(received)
    if whole:
        received.clear()
    return whole


def _is_whole(received: bytearray) -> bool:
    """Whether this is a whole answer with a body of known length; raises RuntimeError where it is not a 2xx."""
    head, found, rest = received.partition(b"\r\n\r\n")
    if not found:
        return False
    if not head.startswith(b"HTTP/1.1 2"):
        raise RuntimeError(received.decode(errors="replace"))
    length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
    if length is None:
        raise RuntimeError(f"an answer without Content-Length: {head.decode()}")
    return len(rest) >= int(length.group(1))


if __name__ == "__main__":
    _, given_port, given_path, file, lasting = sys.argv
    sys.stdout.write(str(drive(int(given_port), given_path, Path(file).read_bytes(), float(lasting))))
