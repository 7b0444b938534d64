"""The real program as a child process, on a runtime that pretends to have CoreML.

FAKE_COREML says what is wrong with it: units=fault,units=fault.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    from fake_coreml import FakeCoreML

    from watcher import cli
    from watcher.session import runtime

    pairs = [pair.split("=") for pair in os.environ.get("FAKE_COREML", "").split(",") if pair]
    fake = FakeCoreML(faults=dict(pairs), cpu_slow_s=0.02)
    runtime.runtime = lambda: fake
    cli.main()
