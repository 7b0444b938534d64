"""Token: a secret in the state folder that only the user can read."""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
from pathlib import Path

from watcher import durable

TOKEN_FILE = "api-token"


class Token:
    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / TOKEN_FILE

    def make(self) -> None:
        """See to it that there is one, readable by its owner only. Raises ``OSError``."""
        with contextlib.suppress(FileExistsError):
            durable.write_new(self.path, secrets.token_urlsafe(32).encode() + b"\n", mode=0o600)
        os.chmod(self.path, 0o600)

    def fits(self, given: str) -> bool:
        """Compared in a time that tells nothing; read anew each time, so that a changed file counts at once."""
        try:
            wanted = self.path.read_bytes().strip()
        except OSError:
            return False
        return bool(wanted) and hmac.compare_digest(wanted, given.encode("utf-8", "replace"))
