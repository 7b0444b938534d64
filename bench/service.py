"""``python -m bench.service``: the local service against the bare session on the same network, into docs/server.md.

Each round measures the bare session before and after, so that a machine that slows down slows both. Clients run on the
same machine and take their share of it. ``--requests`` are asked in each round, ``--memory`` in the last one.
"""

from __future__ import annotations

import argparse
import http.client
import socket
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from bench import networks, pages, pictures, place, table

PAGE = place.PROJECT / "docs" / "server.md"
CLIENTS = 8
SAMPLES = 20


@dataclass
class Asked:
    """One way of asking, over all rounds: requests a second, the same over the bare session, each answer's ms."""

    what: str
    rates: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    took_ms: list[list[float]] = field(default_factory=list)
    folder: list[float] = field(default_factory=list)

    def line(self) -> str:
        p50 = statistics.median(_quantile(round_ms, 0.5) for round_ms in self.took_ms)
        p99 = statistics.median(_quantile(round_ms, 0.99) for round_ms in self.took_ms)
        files = f"{table.number(statistics.median(self.folder))}" if self.folder else "–"
        values = [
            self.what,
            f"{table.number(statistics.median(self.rates))} ({table.number(min(self.rates))} … "
            f"{table.number(max(self.rates))})",
            f"{statistics.median(self.shares):.2f}",
            f"{table.number(p50)} ms",
            f"{table.number(p99)} ms",
            files,
        ]
        return f"| {' | '.join(values)} |"


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def ask_many(
    port: int, data: bytes, count: int, seen: Callable[[int], None] | None = None
) -> tuple[float, list[float]]:
    """(requests a second, ms of each) of ``count`` requests by ``CLIENTS`` clients; every one must get its map."""

    def client(numbers: Sequence[int]) -> list[float]:
        took = []
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=120)) as line:
            for number in numbers:
                began = time.perf_counter()
                line.request("POST", "/predict", data, {"Content-Type": "image/jpeg"})
                answer = line.getresponse()
                body = answer.read()
                if answer.status != 200 or not body.startswith(b"\x89PNG"):
                    raise RuntimeError(f"{answer.status} {body[:200]!r}")
                took.append((time.perf_counter() - began) * 1000)
                if seen is not None:
                    seen(number)
        return took

    began = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        found = list(pool.map(client, [range(first, count, CLIENTS) for first in range(CLIENTS)]))
    return count / (time.perf_counter() - began), [ms for one in found for ms in one]


def bare(where: place.Place, model: Path) -> float:
    """Runs a second of the session alone."""
    moments = place.child(where, "bare", model=model, frames=60)["moments"]
    return float((len(moments) - 1) / (moments[-1] - moments[0]))


def rounds(model: Path, picture: Path, count: int, requests: int) -> list[Asked]:
    data = picture.read_bytes()
    plain, beside = Asked("nothing else to do"), Asked("beside a folder that is full")
    for _ in range(count):
        with place.place() as where:
            before = bare(where, model)
            port = free_port()
            where.lay_out(model, api={"enabled": True, "port": port})
            with place.daemon(where):
                ask_many(port, data, 2 * CLIENTS)
                alone = ask_many(port, data, requests)
                pictures.fill(where.inbox, picture, 3 * requests)
                place.until(lambda: place.status(where)["counts"]["done"] > 2, 60, "the folder did not begin")
                done, began = _maps(where), time.perf_counter()
                crowded = ask_many(port, data, requests)
                files = (_maps(where) - done) / (time.perf_counter() - began)
                if not any(where.inbox.iterdir()):
                    raise RuntimeError("the folder was done before the requests were")
            limit = (before + bare(where, model)) / 2
        for asked, (rate, took) in ((plain, alone), (beside, crowded)):
            asked.rates.append(rate)
            asked.shares.append(rate / limit)
            asked.took_ms.append(took)
        beside.folder.append(files)
        print(f"bare {limit:.1f}/s  {plain.line()}\n{beside.line()}", flush=True)
    return [plain, beside]


def _maps(where: place.Place) -> int:
    return sum(1 for path in where.outbox.iterdir() if not path.name.startswith("."))


def memory(picture: Path, requests: int) -> list[float]:
    """MiB that the daemon holds, at ``SAMPLES`` moments of so many requests, with a network that costs nothing."""
    model = place.cache() / "trivial.onnx"
    networks.trivial(model)
    held: list[float] = []
    with place.place() as where:
        port = free_port()
        where.lay_out(model, api={"enabled": True, "port": port})
        with place.daemon(where) as process:

            def seen(number: int) -> None:
                if number % (requests // SAMPLES) == 0:
                    held.append(_resident_mib(process.pid))
                    print(f"after {number}: {held[-1]:.0f} MiB", flush=True)

            ask_many(port, picture.read_bytes(), requests, seen)
    return held


def _resident_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS:"))) / 1024


def rendered(found: list[Asked], held: list[float], asked: argparse.Namespace) -> str:
    lines = [
        "| while there is | requests a second | of the bare session | p50 | p99 | files a second beside |",
        "|---|---|---|---|---|---|",
        *(one.line() for one in found),
        "",
        f"{CLIENTS} clients, {asked.requests} requests a round, median of {asked.rounds} rounds (smallest … largest), "
        "a JPEG of 384 x 384, the starter network. `of the bare session`: over runs of the session in a loop on a "
        "prepared tensor, nothing decoded and nothing encoded. Clients and daemon share the cores.",
        "",
        f"Memory of the daemon over {asked.memory:,} requests (trivial network): {held[1]:.0f} MiB after the first "
        f"{100 // SAMPLES} %, {statistics.median(held[SAMPLES // 2 :]):.0f} MiB in the middle of the second half, "
        f"{held[-1]:.0f} MiB at the end; at most {max(held):.0f} MiB.",
        "",
        table.machine(),
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.service", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--memory", type=int, default=10_000)
    parser.add_argument("--dry", action="store_true", help="write nothing to the page")
    asked = parser.parse_args()
    picture = pictures.made(place.cache(), "384.jpg")
    assert picture is not None
    found = rounds(place.PROJECT / "models" / "starter.onnx", picture, asked.rounds, asked.requests)
    text = rendered(found, memory(picture, asked.memory), asked)
    print(text)
    if not asked.dry:
        pages.put(PAGE, "service", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
