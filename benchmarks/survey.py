"""Test one server with SQLite and 500 concurrent participants: response times, and completeness of the data.

Participants wait some seconds before they send a page, a tenth of what people take. The test is repeated with
the server killed and restarted halfway. Everything stays on loopback.
"""

from __future__ import annotations

import asyncio
import html
import json
import os
import random
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode

from biassay.survey.study import read_bundled_study, read_study

PEOPLE, THINK, ARRIVE, KEPT_OPEN = 500, (2.0, 10.0), 10.0, 3.0
TOKEN = re.compile(rb'name="token" value="([^"]+)"')
STEP = re.compile(rb'name="step" value="(\d+)"')
TITLE = re.compile(rb"<h1>([^<]+)</h1>")


class Browser:
    """A minimal browser: one connection, cookies, redirects."""

    def __init__(self, port: int, times: list[float]) -> None:
        self.port, self.times, self.used = port, times, 0.0
        self.cookies: dict[bytes, bytes] = {}
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, form: dict[str, str] | None = None) -> tuple[int, bytes]:
        """Request a page, follow redirects and time each request."""
        body = urlencode(form).encode() if form is not None else b""
        start = time.perf_counter()
        status, headers, content = await self.request(method, path, body)
        self.times.append(time.perf_counter() - start)
        for name, value in headers:
            if name == b"set-cookie":
                key, _, rest = value.partition(b"=")
                self.cookies[key] = rest.partition(b";")[0]
        if status == 303:
            place = next(value for name, value in headers if name == b"location").decode()
            return await self.ask("GET", place)
        return status, content

    async def request(self, method: str, path: str, body: bytes) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        if time.monotonic() - self.used > KEPT_OPEN:  # the server closes idle connections; a browser reconnects
            self.close()
        self.used = time.monotonic()
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.streams
        cookies = b"; ".join(key + b"=" + value for key, value in self.cookies.items())
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n".encode()
        kind = b"Content-Type: application/x-www-form-urlencoded\r\n" if method == "POST" else b""
        writer.write(head + kind + (b"Cookie: " + cookies + b"\r\n" if cookies else b"") + b"\r\n" + body)
        try:
            lines = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
            headers = [(n.lower(), v.strip()) for n, _, v in (line.partition(b":") for line in lines[1:] if line)]
            length = int(dict(headers).get(b"content-length", b"0"))
            return int(lines[0].split()[1]), headers, await reader.readexactly(length)
        except (OSError, asyncio.IncompleteReadError):
            self.close()
            raise

    def close(self) -> None:
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


class Person:
    """A participant who retries if the server is down and records confirmed answers."""

    def __init__(self, number: int, port: int, times: list[float], pairs: tuple[tuple[str, str], ...]) -> None:
        self.rng = random.Random(number)
        self.name, self.browser, self.pairs = f"person-{number}", Browser(port, times), pairs
        self.rated: dict[str, list[int]] = {}
        self.last = ""
        self.confirmed: list[tuple[str, list[int]]] = []
        self.failures = 0

    async def ask(self, method: str, path: str, form: dict[str, str] | None = None) -> tuple[int, bytes]:
        for _ in range(200):
            try:
                status, content = await self.browser.ask(method, path, form)
            except (OSError, asyncio.IncompleteReadError, EOFError):
                self.browser.close()
                await asyncio.sleep(0.25)
                method, path, form = ("GET", "/page", None) if path == "/page" else (method, path, form)
                continue
            if status >= 500:
                self.failures += 1
            return status, content
        raise SystemExit("the server stays away")

    async def live(self, think: tuple[float, float]) -> None:
        await asyncio.sleep(self.rng.uniform(0.0, ARRIVE))
        _, page = await self.ask("GET", f"/?PROLIFIC_PID={self.name}")
        status, page = await self.ask("POST", "/begin", {"token": TOKEN.search(page)[1].decode(), "agree": "yes"})
        while STEP.search(page):
            await asyncio.sleep(self.rng.uniform(*think))
            step = STEP.search(page)[1]
            form = {"token": TOKEN.search(page)[1].decode(), "step": step.decode()}
            ratings = self.answers(page, form)
            status, page = await self.ask("POST", "/page", form)
            found = STEP.search(page)
            if ratings is not None and (found is None or int(found[1]) > int(step)):
                self.confirmed.append((self.last, ratings))
        assert b'class="code"' in page, (status, page[:500])
        self.browser.close()

    def answers(self, page: bytes, form: dict[str, str]) -> list[int] | None:
        if b'class="sliders"' in page:
            self.last = html.unescape(TITLE.search(page)[1].decode())
            ratings = self.rated.setdefault(self.last, [self.rng.choice((10, 90)) for _ in self.pairs])
            form.update({f"pair-{i}": str(rating) for i, rating in enumerate(ratings)})
            return ratings
        if b'name="group"' in page:
            form["group"] = self.last
        elif b'name="high"' in page:
            left, right = self.pairs[0]
            form["high"], form["low"] = (right, left) if self.rated[self.last][0] > 50 else (left, right)
        return None


def served(folder: Path, port: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "biassay", "survey", "serve", "study.toml", "--port", str(port)]
    command += ["--database", "sqlite:///study.sqlite", "--begin-limit", "0", "--page-limit", "0"]
    command += ["--unfinished-limit", "0"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process
        time.sleep(0.1)
    raise SystemExit("the server did not start")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def checked(folder: Path, people: list[Person], target: int) -> str:
    """Check that exactly the confirmed answers are stored, and that every group reached its target."""
    with sqlite3.connect(folder / "study.sqlite") as database:
        integrity = database.execute("PRAGMA integrity_check").fetchone()[0]
        rows = database.execute(
            "SELECT pool_id, place, annotations.group_name, ratings FROM annotations "
            "JOIN participants ON id = participant_id"
        ).fetchall()
        places = database.execute("SELECT valid, held FROM places").fetchall()
        counted = database.execute("SELECT status, count(*) FROM participants GROUP BY status").fetchall()
    kept: dict[str, list[tuple[str, list[int]]]] = {}
    for pool_id, _, group, ratings in sorted(rows, key=lambda row: (row[0], row[1])):
        kept.setdefault(pool_id, []).append((group, json.loads(ratings)))
    lost = sum(one not in kept.get(person.name, []) for person in people for one in person.confirmed)
    doubled = sum(len(own) != 5 for own in kept.values())
    failures = sum(person.failures for person in people)
    exact = sum(valid == target and held == 0 for valid, held in places)
    return (
        f"{sum(len(p.confirmed) for p in people)} pages with ratings confirmed, {lost} lost, {doubled} participants "
        f"with more or fewer than five, {exact} of {len(places)} groups at exactly {target}, {failures} answers 5xx, "
        f"integrity {integrity}, {dict(counted)}"
    )


async def crowd(
    people: list[Person], think: tuple[float, float], kill: tuple[subprocess.Popen[bytes], Path, int] | None
) -> subprocess.Popen[bytes] | None:
    tasks = [asyncio.create_task(person.live(think)) for person in people]
    again = None
    if kill is not None:
        process, folder, port = kill
        await asyncio.sleep(ARRIVE + 15.0)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        again = await asyncio.to_thread(served, folder, port)
    await asyncio.gather(*tasks)
    return again


def spread(times: list[float]) -> str:
    ordered = sorted(times)
    at = {share: ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000 for share in (0.5, 0.95, 0.99)}
    return f"median {at[0.5]:.1f} ms, 95% {at[0.95]:.1f} ms, 99% {at[0.99]:.1f} ms, {len(times)} requests"


def session(number: int, *, kill: bool, think: tuple[float, float]) -> list[float]:
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        groups = len(read_study("cao2022").groups)
        target = -(-number * 4 // groups)
        text = read_bundled_study("cao2022").replace("annotations = 20 ", f"annotations = {target} ")
        (folder / "study.toml").write_text(text.replace("seconds_per_group = 8 ", "seconds_per_group = 0 "))
        study = read_study(folder / "study.toml")
        process = served(folder, port)
        times: list[float] = []
        people = [Person(i, port, times, study.pairs) for i in range(number)]
        try:
            again = asyncio.run(crowd(people, think, (process, folder, port) if kill else None))
            process = again or process
        finally:
            process.terminate()
            process.wait()
        print(f"  {spread(times)}")
        if number * 4 % groups == 0:
            print(f"  {checked(folder, people, target)}")
        return times


def main() -> None:
    print("one participant at a time (idle):", flush=True)
    idle = session(1, kill=False, think=(0.05, 0.1))
    print(f"{PEOPLE} at once, {THINK[0]:g} to {THINK[1]:g} s a page:", flush=True)
    loaded = session(PEOPLE, kill=False, think=THINK)
    at = [sorted(times)[int(0.95 * len(times))] for times in (idle, loaded)]
    print(f"  95% against idle: {at[1] / at[0]:.1f}x")
    print(f"{PEOPLE} at once, the server killed with SIGKILL and started again:", flush=True)
    session(PEOPLE, kill=True, think=THINK)


if __name__ == "__main__":
    main()
