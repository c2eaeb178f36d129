"""Worker process of the local engine: ``python -m biassay.engines.worker``, with two pipes.

The process is not a fork of its parent, so it neither inherits threads nor imports the user's script. When the parent
ends, for whatever reason, the pipe of tasks is closed and the worker ends too.
"""

from __future__ import annotations

import signal
import sys
import traceback
from multiprocessing.connection import Connection

from biassay.engines.base import serialize_error
from biassay.errors import BiassayError, explain_memory_errors


def main(tasks: Connection, results: Connection) -> None:
    """Receive a worker factory and then tasks, and send back results and errors, until the parent closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    try:
        with explain_memory_errors():
            worker = tasks.recv()()
            while True:
                task = tasks.recv()
                for result in worker(task):
                    results.send(("result", result))
                results.send(("done", None))
    except (EOFError, BrokenPipeError):
        return
    except (BiassayError, OSError) as error:
        results.send(("error", serialize_error(error)))
    except Exception:  # a bug: the parent raises an error with this traceback
        results.send(("fault", traceback.format_exc()))


if __name__ == "__main__":
    main(Connection(int(sys.argv[1]), writable=False), Connection(int(sys.argv[2]), readable=False))
