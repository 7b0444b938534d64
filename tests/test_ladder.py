"""The provider ladder: every fault that CoreML is known for, and the rung on which it ends."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import fake_coreml
import numpy as np
import pytest
from fake_coreml import FakeCoreML
from fake_session import FakeSession
from waiting import until

from watcher import session as session_room
from watcher import volume
from watcher.depth import Plan
from watcher.engine import Engine, suspicious
from watcher.errors import ConfigError
from watcher.frame import Frame, Identity, Ready, Source
from watcher.handover import Handover
from watcher.session import CoreMLOptions, Options, Report, Session, Shape, golden, open_session, runtime
from watcher.session.guard import Guard

STARTER = Path(__file__).parents[1] / "models" / "starter.onnx"
CHILD = Path(__file__).parent / "on_coreml.py"
Opens = Callable[..., Session]


@pytest.fixture
def mac(monkeypatch: pytest.MonkeyPatch) -> FakeCoreML:
    fake = FakeCoreML()
    monkeypatch.setattr(runtime, "runtime", lambda: fake)
    return fake


@pytest.fixture
def opened(tmp_path: Path) -> Opens:
    def opens(**options: object) -> Session:
        coreml = CoreMLOptions(cache_dir=tmp_path / "compiled", model_key="a" * 64)
        values = {"provider": "coreml", "coreml": coreml, "trials_dir": tmp_path, **options}
        return open_session(STARTER, Options(**values))  # type: ignore[arg-type]

    return opens


FAULTS = [
    ("refuse", "could not load"),
    ("nan", "NaN"),
    ("constant", "constant"),
    ("wrong", "differs from the CPU's"),
    ("slightly", "mean error 2.0%"),
    ("none", "took no node"),
]


@pytest.mark.parametrize(("fault", "says"), FAULTS, ids=[fault for fault, _ in FAULTS])
def test_a_broken_rung_is_left_for_the_next(mac: FakeCoreML, opened: Opens, fault: str, says: str) -> None:
    """Whatever is wrong with ALL, CPUAndGPU runs, and the report says what was wrong with ALL."""
    mac.faults = {"ALL": fault}
    with opened() as session:
        assert session.report.provider == "coreml"
        assert says in session.report.note
        assert "CPUAndGPU runs instead" in session.report.note
    assert mac.tried() == ["ALL", "CPUAndGPU"]


@pytest.mark.parametrize(("fault", "says"), FAULTS, ids=[fault for fault, _ in FAULTS])
@pytest.mark.parametrize("wish", ["auto", "coreml"])
def test_the_last_rung_is_the_cpu(mac: FakeCoreML, opened: Opens, fault: str, says: str, wish: str) -> None:
    """When no rung of CoreML holds the CPU runs, loudly, for as long as that is remembered too."""
    mac.faults = {"ALL": fault, "CPUAndGPU": fault}
    for _ in range(2):
        with opened(provider=wish) as session:
            assert session.report.provider == "cpu"
            assert says in session.report.note
            assert "the CPU runs instead" in session.report.note
    assert mac.tried() == ["ALL", "CPUAndGPU"]


def test_nothing_else_where_nothing_else_is_allowed(mac: FakeCoreML, opened: Opens) -> None:
    """Without permission to fall back a CoreML that gives wrong numbers refuses to start."""
    mac.faults = {"ALL": "wrong", "CPUAndGPU": "nan"}
    with pytest.raises(ConfigError, match="NaN") as caught:
        opened(allow_fallback=False)
    assert "model.provider" in caught.value.remedy


def test_what_is_remembered_allows_nothing(mac: FakeCoreML, opened: Opens) -> None:
    """A verdict for the CPU from when that was allowed does not hold where it no longer is."""
    mac.faults = {"ALL": "wrong", "CPUAndGPU": "nan"}
    with opened() as session:
        assert session.report.provider == "cpu"
    with pytest.raises(ConfigError, match="NaN"):
        opened(allow_fallback=False)
    mac.faults = {}
    with opened(allow_fallback=False) as session:
        assert session.report.provider == "coreml"


def test_small_differences_are_no_fault(mac: FakeCoreML, opened: Opens) -> None:
    """Half precision differs a little; two in a thousand is within what is allowed."""
    mac.faults = {"ALL": "within"}
    with opened() as session:
        trial = session.report.trials[-1]
    assert (trial.fault, trial.rung) == ("", "coreml MLProgram ALL")
    assert 0.0015 < trial.error < 0.0025


def test_auto_takes_the_fastest_that_agrees(mac: FakeCoreML, opened: Opens) -> None:
    """Time decides between providers that agree, in both directions, and the numbers are told."""
    mac.cpu_slow_s, mac.faults = 0.05, {"ALL": "slow", "CPUAndGPU": ""}
    with opened(provider="auto") as session:
        assert session.report.provider == "coreml"
        assert re.match(r"coreml MLProgram CPUAndGPU was chosen in \d+\.\d s: cpu: ", session.report.decision)
        assert session.report.decided_s > 0
        assert session.report.note == ""
    mac.cpu_slow_s, mac.faults = 0.0, {"ALL": "slow", "CPUAndGPU": "slow"}
    with opened(provider="auto", anew=True) as session:
        assert (session.report.provider, session.report.note) == ("cpu", "")


def test_a_verdict_is_remembered_for_what_it_was_about(mac: FakeCoreML, opened: Opens) -> None:
    """The second start tries only the chosen rung; another runtime version measures again."""
    mac.cpu_slow_s, mac.faults = 0.05, {"ALL": "slow", "CPUAndGPU": ""}
    opened(provider="auto").close()
    assert mac.tried() == ["ALL", "CPUAndGPU"]
    opened(provider="auto").close()
    assert mac.tried() == ["ALL", "CPUAndGPU", "CPUAndGPU"]
    mac.version = "1.33.0"
    opened(provider="auto").close()
    assert mac.tried()[3:] == ["ALL", "CPUAndGPU"]


def test_a_verdict_that_does_not_hold_any_more(mac: FakeCoreML, opened: Opens) -> None:
    """What was chosen once and is broken today is measured anew."""
    opened().close()
    mac.faults = {"ALL": "refuse"}
    with opened() as session:
        assert "CPUAndGPU runs instead" in session.report.note


def test_a_damaged_memory_is_an_empty_one(mac: FakeCoreML, opened: Opens, tmp_path: Path) -> None:
    """A file of verdicts that nobody can read costs one measurement."""
    opened().close()
    for damaged in ("{", "[]", '{"x": 1}'):
        (tmp_path / "verdicts.json").write_text(damaged)
        with opened() as session:
            assert session.report.provider == "coreml"


# -- compiled models ----------------------------------------------------------------------------------------------


def folders(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "compiled").iterdir())


def test_a_good_cache_has_no_mark(mac: FakeCoreML, opened: Opens, tmp_path: Path) -> None:
    """After the first inference the compiled model counts as good."""
    opened().close()
    (folder,) = folders(tmp_path)
    assert [path.name for path in folder.iterdir()] == ["model"]


def test_a_stale_cache_is_made_anew_once(mac: FakeCoreML, opened: Opens, tmp_path: Path) -> None:
    """A compiled model that does not load any more is wiped, and the same rung is tried again before it counts."""
    opened().close()
    mac.faults = {"ALL": "stale"}
    with opened() as session:
        assert (session.report.provider, session.report.note) == ("coreml", "")
    assert mac.tried() == ["ALL", "ALL", "ALL"]


def test_a_half_made_cache_is_not_used(mac: FakeCoreML, opened: Opens, tmp_path: Path) -> None:
    """The mark of a process that died while compiling wipes the folder."""
    opened().close()
    (folder,) = folders(tmp_path)
    (folder / ".building").write_text("999999999")
    (folder / "half").write_text("")
    opened().close()
    assert not (folder / "half").exists()
    assert not (folder / ".building").exists()


def test_a_cache_that_another_process_builds_is_left_alone(mac: FakeCoreML, opened: Opens, tmp_path: Path) -> None:
    """Two processes never build in one folder: the second goes without."""
    opened().close()
    (folder,) = folders(tmp_path)
    (folder / ".building").write_text(str(os.getppid()))
    opened().close()
    assert "ModelCacheDirectory" not in mac.offered[-1][0][1]
    assert (folder / ".building").exists()


def test_old_caches_are_pruned(mac: FakeCoreML, opened: Opens, tmp_path: Path) -> None:
    """A few folders stay for going back; a folder that is not ours stays in any case."""
    (tmp_path / "compiled" / "notes").mkdir(parents=True)
    for minor in range(32, 42):
        mac.version = f"1.{minor}.0"
        opened().close()
    names = [path.name for path in folders(tmp_path)]
    assert "notes" in names
    assert len(names) == 6
    assert any("1.41.0" in name for name in names)


def test_a_disk_that_refuses_costs_only_the_cache(mac: FakeCoreML, tmp_path: Path) -> None:
    """Where nothing can be written CoreML still runs."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    options = Options(
        provider="coreml", trials_dir=blocked / "x", coreml=CoreMLOptions(cache_dir=blocked / "y", model_key="b" * 64)
    )
    with open_session(STARTER, options) as session:
        assert session.report.provider == "coreml"


# -- the crash guard, with processes that really die --------------------------------------------------------------


def die(tmp_path: Path, verb: str, **faults: str) -> subprocess.CompletedProcess[str]:
    """One life of the real program on the fake runtime."""
    command, env = life(tmp_path, verb, **faults)
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)


def life(tmp_path: Path, verb: str, **faults: str) -> tuple[list[str], dict[str, str]]:
    """(command, environment) of the real program on the fake runtime, with one picture in its inbox."""
    pictures = Path(__file__).parents[1] / "examples" / "inbox"
    env = {
        **{name: os.environ[name] for name in ("PATH",)},
        "HOME": str(tmp_path),
        "FAKE_COREML": ",".join(f"{units}={fault}" for units, fault in faults.items()),
    }
    inbox = tmp_path / "inbox"
    inbox.mkdir(exist_ok=True)
    if not any(inbox.iterdir()):
        (inbox / "coffee.jpg").write_bytes((pictures / "coffee.jpg").read_bytes())
    (tmp_path / "config.yaml").write_text(
        json.dumps(
            {
                "folders": [
                    {
                        "inbox": str(inbox),
                        "outbox": str(tmp_path / "outbox"),
                        "processed": str(tmp_path / "processed"),
                        "failed": str(tmp_path / "failed"),
                    }
                ],
                "model": {"name": "starter", "provider": "coreml"},
                "limits": {"load_timeout_s": 5.0 if verb == "once" else 60.0},
                "state_dir": str(tmp_path / "state"),
            }
        )
    )
    return [sys.executable, str(CHILD), verb, "--config", str(tmp_path / "config.yaml")], env


@pytest.mark.parametrize(("fault", "code"), [("abort", -6), ("abort-run", -6), ("hang", 70)])
def test_a_rung_that_kills_the_process_is_left_after_two_strikes(tmp_path: Path, fault: str, code: int) -> None:
    """The daemon dies twice of ALL, by abort or by its own deadline; the third life runs on the next rung."""
    assert [die(tmp_path, "once", ALL=fault).returncode for _ in range(2)] == [code, code]
    third = die(tmp_path, "once", ALL=fault)
    assert third.returncode == 0, third.stderr
    assert (tmp_path / "outbox" / "coffee_depth.png").exists()
    status = json.loads((tmp_path / "state" / "status.json").read_text())
    assert status["provider"] == "coreml"
    assert "the process died 2 times" in status["fallback"]
    assert status["partitions"] == 1


def test_a_stop_while_coreml_compiles_is_no_strike(tmp_path: Path) -> None:
    """SIGTERM during a load that takes for ever ends the daemon in order, and CoreML is not blamed for it."""
    command, env = life(tmp_path, "run", ALL="hang")
    state = tmp_path / "state" / "coreml"
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        until(lambda: list(state.glob("trying-*")), what="the mark")
        child.terminate()
        assert child.wait(20) == 0
    assert not list(state.glob("trying-*"))
    assert not (state / "strikes.json").exists()


def test_one_death_is_no_verdict(tmp_path: Path) -> None:
    """After a single crash the same rung is tried again, and its success wipes the strike."""
    guard = Guard(tmp_path)
    (tmp_path / "trying-999999999.json").write_text('{"what": "rung"}')
    assert guard.collect() == ["rung"]
    assert guard.strikes("rung") == 1
    with guard.trying("rung"):
        assert list(tmp_path.glob("trying-*"))
    assert guard.strikes("rung") == 0
    assert not list(tmp_path.glob("trying-*"))


def test_the_mark_of_a_living_process_is_no_strike(tmp_path: Path) -> None:
    """A doctor that looks while the daemon loads takes nobody for dead."""
    (tmp_path / f"trying-{os.getppid()}.json").write_text('{"what": "rung"}')
    guard = Guard(tmp_path)
    assert guard.collect() == []
    assert guard.strikes("rung") == 0


def test_an_intended_end_is_no_strike(tmp_path: Path) -> None:
    """A stop while CoreML compiles takes the mark away."""
    guard = Guard(tmp_path)
    with guard.trying("rung"):
        guard.forgive()
        assert not list(tmp_path.glob("trying-*"))


def test_too_little_room_to_compile(mac: FakeCoreML, opened: Opens, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without room for a compiled model CoreML is not asked, and tomorrow, with room, it is."""
    monkeypatch.setattr(volume, "free_bytes", lambda _: 5_000_000)
    with opened() as session:
        assert session.report.provider == "cpu"
        assert "5 MB are free" in session.report.note
    assert mac.tried() == []
    monkeypatch.setattr(volume, "free_bytes", lambda _: 10**12)
    with opened() as session:
        assert session.report.provider == "coreml"
    monkeypatch.setattr(volume, "free_bytes", lambda _: 5_000_000)
    with opened() as session:  # what is compiled needs no room
        assert session.report.provider == "coreml"


def test_a_transformer_begins_with_the_gpu(mac: FakeCoreML, opened: Opens) -> None:
    """Networks of the other family have a ladder of their own."""
    with opened(transformer=True) as session:
        assert session.report.provider == "coreml"
    assert mac.tried() == ["CPUAndGPU"]


def test_a_transformer_in_pieces(mac: FakeCoreML, opened: Opens) -> None:
    """One that CoreML cuts into many pieces runs on the CPU; a convolutional network is left to the clock."""
    mac.faults = {"ALL": "pieces", "CPUAndGPU": "pieces"}
    with opened(transformer=True) as session:
        assert session.report.provider == "cpu"
        assert "cuts it into 6 pieces" in session.report.note
    with opened(transformer=False, input_px=None, threads=1) as session:
        assert session.report.provider == "coreml"


@pytest.mark.parametrize(("fault", "provider"), [("", "coreml"), ("wrong", "cpu")])
def test_the_neural_engine_on_request(
    mac: FakeCoreML, tmp_path: Path, opened: Opens, fault: str, provider: str
) -> None:
    """Asked for, the Neural Engine is the only rung, and it too has to give the CPU's map."""
    mac.faults = {"CPUAndNeuralEngine": fault}
    with opened(coreml=CoreMLOptions("CPUAndNeuralEngine", model_key="a" * 64)) as session:
        assert session.report.provider == provider
    assert mac.tried() == ["CPUAndNeuralEngine"]


# -- frame by frame -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fill", "contrast", "bad"),
    [("flat", 1.0, True), ("flat", 0.01, False), ("nan", 0.01, True), ("map", 1.0, False)],
)
def test_what_cannot_be_a_map(fill: str, contrast: float, bad: bool) -> None:
    """A flat map of a picture that is not, or one that is not finite; a gray card may have a flat one."""
    tensor = np.linspace(0, contrast, 3 * 64, dtype=np.float32).reshape(1, 3, 8, 8)
    depth = np.full((8, 8), 3, np.float32) if fill != "map" else tensor[0, 0]
    if fill == "nan":
        depth = depth.copy()
        depth[3, 3] = np.nan
    assert suspicious(tensor, depth) is bad


def test_one_colour_is_no_content() -> None:
    """A blue matte may well have a flat map, however far apart its channels are."""
    tensor = np.zeros((1, 3, 8, 8), np.float32)
    tensor[0, 2] = 1
    assert not suspicious(tensor, np.zeros((8, 8), np.float32))


@pytest.mark.parametrize("made", ["constant", "nan"])
def test_a_frame_without_content_is_made_again(
    mac: FakeCoreML, opened: Opens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: str
) -> None:
    """A rung that was right at first and gives a frame nothing is left; that frame's map comes from the next."""
    broken: set[str] = set()
    monkeypatch.setitem(fake_coreml.RUNS, "later", lambda map_: fake_coreml.RUNS[made](map_) if broken else map_)
    mac.faults = {"ALL": "later"}

    def condemn(report: Report, _tensor: np.ndarray) -> bool:
        session_room.condemn(tmp_path, report)
        return report.provider == "coreml"

    engine = Engine(opened, lambda shape: cast(Plan, shape), condemn)
    ready: Handover[Ready] = Handover(1)
    engine.start(ready, lambda: None)
    assert engine.plan() is not None
    broken.add("now")
    tensor = golden(*(int(side) for side in (engine_shape(engine))))
    frame = Frame(1, Source(tmp_path, "a.png", "a.png", Identity(1, 1, 1, 1)), 0, "a")
    ready.give(Ready(frame, tensor, 8, 8))
    raw = engine.raw.take()
    ready.close()
    assert engine.join(10)
    assert raw is not None
    assert np.isfinite(raw.depth).all()
    assert np.ptp(raw.depth) > 0
    report = engine.report
    assert report is not None
    assert report.provider == "coreml"
    assert "ALL: it gave a picture a map that is constant or not finite" in report.note
    assert "CPUAndGPU runs instead" in report.note
    broken.clear()
    with opened() as session:
        assert "CPUAndGPU runs instead" in session.report.note
    with opened(anew=True) as session:
        assert session.report.note == ""


def engine_shape(engine: Engine) -> tuple[int, int]:
    shape = cast(Shape, engine.plan())
    return shape.height_px, shape.width_px


def test_the_cpu_has_no_next(tmp_path: Path) -> None:
    """Where the CPU itself gives such a map, that is the map."""
    answers = [np.full((16, 24), 3, np.float32)]
    engine = Engine(lambda: FakeSession(answer=lambda _: answers[0]), lambda shape: cast(Plan, shape))
    ready: Handover[Ready] = Handover(1)
    engine.start(ready, lambda: None)
    frame = Frame(1, Source(tmp_path, "a.png", "a.png", Identity(1, 1, 1, 1)), 0, "a")
    ready.give(Ready(frame, golden(16, 24), 16, 24))
    raw = engine.raw.take()
    ready.close()
    assert engine.join(10)
    assert raw is not None
    assert np.ptp(raw.depth) == 0
