"""``python -m watcher`` is ``depth-watcher``."""

from watcher.cli import main

main()
