"""Measure the speed-up of `biassay.ask` by 16 connections, with a local server that takes 50 ms per request.

python benchmarks/connections.py [PROMPTS]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import biassay
from phase import Phase

ROOT = Path(__file__).resolve().parents[1]
SECONDS, CONNECTIONS, ALONE = 0.05, 16, 60
SERVER = f"""
import sys
sys.path[:0] = {[str(ROOT / "src"), str(ROOT)]!r}
from tests.models.answer_server import chat
from tests.models.api_server import Endpoint
with Endpoint() as server:
    server.always, server.hold = chat, {SECONDS}
    print(server.base, flush=True)
    server.serve_forever()
"""


def a_prompt(address: str, connections: int, count: int) -> float:
    """Return the seconds per prompt of `biassay.ask` with this number of prompts."""
    model, phase = f"chat:toy?base_url={address}&concurrency={connections}", Phase("prompts")
    with tempfile.TemporaryDirectory() as cache:
        biassay.ask(model, "wat-racism", n_answers=count, read="replies", cache=cache, listener=phase)
    return phase.seconds / phase.count


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1600
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        a_prompt(address, CONNECTIONS, CONNECTIONS)  # to warm up
        for _ in range(3):
            one, many = a_prompt(address, 1, ALONE), a_prompt(address, CONNECTIONS, count)
            print(
                f"one {one * 1e3:.1f} ms, {CONNECTIONS} {many * 1e3:.2f} ms a prompt: {one / many:.1f} times",
                flush=True,
            )
        server.kill()


if __name__ == "__main__":
    main()
