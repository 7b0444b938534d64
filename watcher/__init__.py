"""depth-watcher: a folder that turns pictures into depth maps.

The environment is touched before anything else may import ONNX Runtime: its wheels carry a telemetry
client that is on by default, and it is only kept silent when the variable is set first.
"""

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__version__ = "0.1.0"
