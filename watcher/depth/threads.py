"""How many threads OpenCV has for one picture."""

from __future__ import annotations

import cv2


def one_thread_each() -> None:
    """Let every call of OpenCV stay in the thread that makes it.

    Pictures are worked on side by side, so its own pool adds no speed; its threads, which spin while they wait, take
    the cores that the network runs on.
    """
    cv2.setNumThreads(1)
