"""How much faster 16 connections are than one, with answers kept: a server of its own process that takes 50 ms.

python benchmarks/connections.py [PROMPTS]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from biassay.runs.asking import Interview
from biassay.runs.listener import Silent
from biassay.runs.models import asked_models
from biassay.runs.team import open_team
from biassay.studies.study import Requests
from biassay.texts.requests import Prompt

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
    """Seconds for each of so many prompts."""
    model = f"chat:toy?base_url={address}&concurrency={connections}"
    (member,) = open_team(asked_models(model), ("replies",), Silent())
    prompts = [Prompt(f"question {i}") for i in range(count)]
    with tempfile.TemporaryDirectory() as cache:
        began = time.perf_counter()
        Interview(Path(cache), None, None, Silent()).ask(member, Requests(prompts=prompts))
        return (time.perf_counter() - began) / count


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
