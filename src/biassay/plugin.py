"""Everything that an extension imports: studies, metrics, outcomes of responses, model backends and benchmarks.

Names here are stable; other modules may change at any time. A name is imported when it is first
used, so that a light plugin stays light. ``plugin.pyi`` lists them, and docs/plugin.md
describes each of them.
"""

from __future__ import annotations

from biassay.stubs import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
