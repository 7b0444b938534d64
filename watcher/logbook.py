"""The log: one line an event, as text or JSON, in a file that turns over by itself, and on the terminal."""

from __future__ import annotations

import json
import logging
import logging.handlers
import traceback
from pathlib import Path
from typing import TextIO

from watcher.clock import stamp

_TURN_OVER_BYTES = 5_000_000
_KEPT_FILES = 3


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        # A name may hold a line feed; what follows must not look like an entry of its own.
        message = record.getMessage().replace("\n", "\n    ")
        text = f"{stamp(record.created)} {record.levelname.lower():7} {message}"
        if record.exc_info:
            text += "\n" + "".join(traceback.format_exception(*record.exc_info)).rstrip()
        return text


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": stamp(record.created),
            "level": record.levelname.lower(),
            "room": record.name.removeprefix("watcher."),
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["trace"] = "".join(traceback.format_exception(*record.exc_info))
        return json.dumps(line)


def open_log(level: str, form: str, file: Path | None, terminal: TextIO | None = None) -> None:
    """Send the program's log lines to ``file`` and, where given, to ``terminal``. Raises ``OSError``."""
    logger = logging.getLogger("watcher")
    close_log()
    logger.setLevel(level.upper())
    logger.propagate = False
    formatter = _Json() if form == "json" else _Text()
    handlers: list[logging.Handler] = []
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        handlers.append(
            logging.handlers.RotatingFileHandler(
                file, maxBytes=_TURN_OVER_BYTES, backupCount=_KEPT_FILES, encoding="utf-8", errors="backslashreplace"
            )
        )
    if terminal is not None:
        if hasattr(terminal, "reconfigure"):
            terminal.reconfigure(errors="backslashreplace")
        handlers.append(logging.StreamHandler(terminal))
    for handler in handlers or [logging.NullHandler()]:
        handler.setFormatter(formatter)
        logger.addHandler(handler)


def close_log() -> None:
    logger = logging.getLogger("watcher")
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()
