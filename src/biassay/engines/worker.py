"""A worker process of the local engine: ``python -m biassay.engines.worker``, with two pipes.

A process of its own, and not a copy of its parent: it neither needs the user's script to be importable nor inherits
threads. When the parent ends, for whatever reason, the pipe of tasks is closed and the worker ends too.
"""

from __future__ import annotations

import signal
import sys
import traceback
from multiprocessing.connection import Connection

from biassay.engines.base import parts_of
from biassay.errors import BiassayError, explaining_memory

__all__ = ["main"]


def main(tasks: Connection, results: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    try:
        with explaining_memory():
            worker = tasks.recv()()
            while True:
                task = tasks.recv()
                for result in worker(task):
                    results.send(("result", result))
                results.send(("done", None))
    except (EOFError, BrokenPipeError):
        return
    except (BiassayError, OSError) as error:
        results.send(("error", parts_of(error)))
    except Exception:  # nothing is swallowed: a fault of the program is raised by the parent, with this traceback
        results.send(("fault", traceback.format_exc()))


if __name__ == "__main__":
    main(Connection(int(sys.argv[1]), writable=False), Connection(int(sys.argv[2]), readable=False))
