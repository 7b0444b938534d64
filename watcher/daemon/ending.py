"""Ending: the threads go in the order in which frames flow, so that none waits for one that has gone."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from watcher.clock import now_s
from watcher.daemon.telling import Rooms
from watcher.watch import Watch

if TYPE_CHECKING:
    from watcher.web.service import Service

log = logging.getLogger(__name__)


def stop_threads(watch: Watch, service: Service | None, rooms: Rooms, until_s: float) -> bool:
    """Everything down until then; False where a thread is inside a call that does not end."""

    def left_s() -> float:
        return max(0.0, until_s - now_s())

    watch.stop()
    if service is not None and not service.stop(now_s() + left_s() / 2):
        log.warning("the local service did not end in time")
    rooms.loader.stopping.set()
    rooms.finisher.stopping.set()
    rooms.engine.give_up_waiting()
    rooms.turns.end()  # whose turn has not come is given back by whoever holds it
    rooms.intake.stop()
    if not rooms.fetcher.stop(0.2):
        log.warning("a file is still coming from iCloud; it is left to the system")
    if not rooms.intake.join(left_s()):
        return False
    rooms.intake.work.close()
    if not rooms.loader.join(left_s()):
        return False
    rooms.loader.ready.close()
    if not rooms.engine.join(left_s()):
        return False
    rooms.engine.raw.close()
    return rooms.finisher.join(left_s())
