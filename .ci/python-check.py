"""Says whether this Python can run the program; written so that even a very old one can read it.

Ends with 0 and no word where all is well, else with 1 and one sentence (or silently, with --quiet).
"""

import platform
import sys


def trouble():
    found = "%d.%d at %s" % (sys.version_info[0], sys.version_info[1], sys.executable)
    if sys.version_info < (3, 11):
        return (
            "Python 3.11 or newer is needed, this is %s. Install one from python.org and say: make PYTHON=python3.13"
            % found
        )
    if sys.version_info >= (3, 15):
        return (
            "the locked ONNX Runtime has no wheel yet for Python %s. Use 3.11 to 3.14: make PYTHON=python3.13" % found
        )
    if sys.platform == "darwin" and platform.machine() != "arm64":
        return (
            "this is an Intel Python (%s), and ONNX Runtime is made for Apple Silicon only. "
            "On an M-series Mac, install a native Python and leave Rosetta." % found
        )
    if sys.platform == "darwin" and int(platform.mac_ver()[0].split(".")[0] or 0) < 14:
        return "ONNX Runtime needs macOS 14 or newer, this is %s." % platform.mac_ver()[0]
    if sys.platform not in ("darwin", "linux"):
        return "this system (%s) is not supported: it runs on macOS and Linux." % sys.platform
    return ""


if __name__ == "__main__":
    problem = trouble()
    if problem and "--quiet" not in sys.argv:
        sys.stderr.write("error: " + problem + "\n")
    sys.exit(1 if problem else 0)
