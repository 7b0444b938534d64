"""What only the real session can promise: graphs read, providers proved, the runtime's failures in words."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import networks
import numpy as np
import onnxruntime
import pytest
from networks import NCHW, OPEN, network
from onnx import TensorProto

from watcher.errors import ConfigError, ModelError, SessionError
from watcher.session import CoreMLOptions, Options, Shape, open_count, open_session, probe, runtime
from watcher.session.provider import COREML, CPU

STARTER = Path(__file__).parents[1] / "models" / "starter.onnx"


# -- graphs -------------------------------------------------------------------------------------------------------


def test_the_starter_runs() -> None:
    """The embedded network gives a finite, non-negative map of its own size."""
    with open_session(STARTER) as session:
        made = session.run(np.random.default_rng(0).random((1, 3, 128, 128), np.float32))
    assert session.shape == Shape(128, 128)
    assert made.shape == (128, 128)
    assert np.isfinite(made).all()
    assert made.min() >= 0
    assert made.max() > made.min()


@pytest.mark.parametrize(
    ("form", "output"),
    [({}, (1, 16, 24)), ({"keep_channel": True}, (1, 1, 16, 24)), ({"squeeze": [0]}, (16, 24))],
    ids=["1hw", "11hw", "hw"],
)
@pytest.mark.parametrize("announced", [True, False])
def test_output_forms(tmp_path: Path, form: dict[str, Any], output: tuple[int, ...], announced: bool) -> None:
    """Maps with or without leading axes are one map, whether or not the graph says their lengths."""
    path = network(tmp_path / "net.onnx", output=output if announced else [None] * len(output), **form)
    with open_session(path) as session:
        assert session.run(np.ones(NCHW, np.float32)).shape == (16, 24)  # type: ignore[arg-type]


def test_float16_networks_run(tmp_path: Path) -> None:
    """A network in half precision is fed and read in float32 all the same."""
    path = network(tmp_path / "half.onnx", kind=TensorProto.FLOAT16)
    with open_session(path) as session:
        made = session.run(np.full(NCHW, 0.25, np.float32))  # type: ignore[arg-type]
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made, np.full((16, 24), 0.25, np.float32))


def test_the_map_is_found_among_outputs(tmp_path: Path) -> None:
    """A (1, 3) score that comes first is not taken for the map: the output as large as the picture is."""
    with open_session(networks.two_outputs(tmp_path / "net.onnx")) as session:
        assert session.run(np.ones(NCHW, np.float32)).shape == (16, 24)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda p: network(p, (1, 16, 24, 3)), "NCHW"),
        (lambda p: network(p, (1, 1, 16, 24)), "NCHW"),
        (lambda p: network(p, (2, 3, 16, 24)), "2 pictures at once"),
        (lambda p: network(p, (3, 16, 24), output=[None, None]), "3 axes"),
        (lambda p: network(p, kind=TensorProto.DOUBLE), "tensor(double)"),
        (networks.two_inputs, "2 inputs (picture, other)"),
        (networks.no_map, "no output of net.onnx is a depth map"),
    ],
    ids=["nhwc", "gray", "batch", "rank", "double", "inputs", "no-map"],
)
def test_unfeedable_networks_say_why(tmp_path: Path, build: Callable[[Path], Path], says: str) -> None:
    """What this program cannot feed is refused with what was found and what to do, exit 2, before anything runs."""
    with pytest.raises(ModelError) as caught:
        open_session(build(tmp_path / "net.onnx"))
    assert says in str(caught.value)
    assert caught.value.remedy
    assert caught.value.exit_code == 2
    assert open_count() == 0


@pytest.mark.parametrize("shape", [OPEN, (1, 3, None, None), ("n", "c", "h", "w"), (1, 3, 16, "w")])
def test_open_sizes_need_to_be_told(tmp_path: Path, shape: tuple[Any, ...]) -> None:
    """A graph that leaves its size open runs with the catalogue's size, and without one says what is missing."""
    path = network(tmp_path / "open.onnx", shape)
    with pytest.raises(ModelError) as caught:
        open_session(path)
    assert "input_px = [384, 384]" in caught.value.remedy
    with open_session(path, Options(input_px=(16, 24))) as session:
        assert session.shape == Shape(16, 24, fixed=False)
        session.warm_up()


def test_a_fixed_graph_wins_over_the_catalogue(tmp_path: Path) -> None:
    """What the graph says about itself is true, whatever the catalogue believes."""
    with open_session(network(tmp_path / "net.onnx"), Options(input_px=(99, 99))) as session:
        assert session.shape == Shape(16, 24)


def test_probe_reads_without_opening(tmp_path: Path) -> None:
    """The graph's surface can be looked at without a session."""
    graph = probe(network(tmp_path / "net.onnx", OPEN))
    assert [(value.name, value.shape) for value in graph.inputs] == [("picture", OPEN)]
    assert [value.name for value in graph.outputs] == ["mean"]
    assert open_count() == 0


@pytest.mark.parametrize("content", [None, b"", b"hello", b"\x08\x08"], ids=["missing", "empty", "text", "no-graph"])
def test_files_that_are_no_network(tmp_path: Path, content: bytes | None) -> None:
    """A missing, empty or foreign file is the model's fault and says which file."""
    path = tmp_path / "bad.onnx"
    if content is not None:
        path.write_bytes(content)
    for look in (open_session, probe):
        with pytest.raises(ModelError, match=r"bad\.onnx"):
            look(path)


def test_nonfinite_is_passed_on(tmp_path: Path) -> None:
    """NaN is for the arithmetic to count; the session does not hide it."""
    with open_session(network(tmp_path / "log.onnx", before="Log")) as session:
        assert np.isnan(session.run(np.full(NCHW, -1, np.float32))).all()  # type: ignore[arg-type]


# -- failures while running ---------------------------------------------------------------------------------------


class Broken:
    """A runtime session that fails in a given way."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def run(self, outputs: list[str], feed: dict[str, Any]) -> list[Any]:
        if isinstance(self.result, Exception):
            raise self.result
        return [self.result]


@pytest.mark.parametrize(
    "result",
    [
        RuntimeError("[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code\nframes"),
        np.zeros((1, 3, 16, 24), np.float32),
        np.zeros((1, 1, 1, 16, 24), np.float32),
        np.zeros(7, np.float32),
        np.zeros((1, 0, 24), np.float32),
    ],
)
def test_runtime_failures_are_session_errors(result: Any) -> None:
    """Whatever the runtime throws or returns in place of a map ends the run in words, with the session to blame."""
    with open_session(STARTER) as session:
        session._inner = Broken(result)
        with pytest.raises(SessionError) as caught:
            session.run(np.zeros((1, 3, 128, 128), np.float32))
    assert caught.value.blame == "session"
    assert "\n" not in str(caught.value)
    assert "ONNXRuntimeError" not in str(caught.value)


# -- providers ----------------------------------------------------------------------------------------------------


def test_the_cpu_is_proved() -> None:
    """The report says which provider runs how many nodes, read back from the graph."""
    with open_session(STARTER, Options(provider="cpu")) as session:
        report = session.report
    assert (report.requested, report.provider, report.note, report.fell_back) == ("cpu", "cpu", "", False)
    if hasattr(onnxruntime.InferenceSession, "get_provider_graph_assignment_info"):
        assert report.nodes["cpu"] > 10
    else:
        assert report.nodes == {}, "an old runtime says nothing, and nothing is made up"
    assert report.partitions == 0
    assert report.load_ms > 0
    assert onnxruntime.__version__ in report.runtime


@pytest.fixture
def without_coreml() -> None:
    if COREML in onnxruntime.get_available_providers():
        pytest.skip("this machine has CoreML")


@pytest.mark.usefixtures("without_coreml")
def test_coreml_that_is_not_there_is_refused() -> None:
    """`provider: coreml` without permission to fall back refuses to start, exit 2, with the way out."""
    with pytest.raises(ConfigError) as caught:
        open_session(STARTER, Options(provider="coreml", allow_fallback=False))
    assert caught.value.exit_code == 2
    assert "model.provider" in caught.value.remedy
    assert open_count() == 0


@pytest.mark.usefixtures("without_coreml")
def test_a_fallback_is_visible() -> None:
    """`provider: coreml` with permission runs on the CPU, and every report says so."""
    with open_session(STARTER, Options(provider="coreml")) as session:
        assert session.report.fell_back
        assert session.report.provider == "cpu"
        assert "the CPU runs instead" in session.report.note


@pytest.mark.usefixtures("without_coreml")
def test_auto_without_coreml_is_no_fallback() -> None:
    """On a machine without CoreML `auto` means the CPU, and nothing is wrong with that."""
    with open_session(STARTER) as session:
        assert (session.report.provider, session.report.note) == ("cpu", "")


@dataclass
class Part:
    ep_name: str
    count: int

    def get_nodes(self) -> list[int]:
        return [0] * self.count


@dataclass
class FakeRuntime:
    """An ``onnxruntime`` that has CoreML: real sessions on the CPU, with another's assignment put on top."""

    parts: list[Part] | None = field(default_factory=lambda: [Part(COREML, 100), Part(CPU, 8), Part(COREML, 2)])
    refuse: str = ""
    offered: list[Any] = field(default_factory=list)
    free: list[tuple[str, int]] = field(default_factory=list)
    fallback: list[bool] = field(default_factory=list)
    __name__ = "onnxruntime"
    __version__ = "1.99.0"

    SessionOptions = onnxruntime.SessionOptions
    GraphOptimizationLevel = onnxruntime.GraphOptimizationLevel

    def get_available_providers(self) -> list[str]:
        return [COREML, CPU]

    def InferenceSession(self, path: str, settings: Any, providers: Any, enable_fallback: bool) -> Any:  # noqa: N802
        self.offered.append(providers)
        self.fallback.append(enable_fallback)
        if self.refuse and providers[0][0] == COREML:
            raise RuntimeError(self.refuse)
        inner = onnxruntime.InferenceSession(path, settings, providers=[CPU], enable_fallback=False)
        return Assigned(inner, self.parts if providers[0][0] == COREML else [Part(CPU, 110)], providers)


class Assigned:
    """A real session that claims another assignment; ``None``: a runtime too old to say."""

    def __init__(self, inner: Any, parts: list[Part] | None, providers: Any) -> None:
        self._inner = inner
        self._providers = [name for name, _ in providers]
        if parts is not None:
            self.get_provider_graph_assignment_info = lambda: parts

    def get_providers(self) -> list[str]:
        return self._providers

    def __getattr__(self, name: str) -> Any:
        if name == "get_provider_graph_assignment_info":
            raise AttributeError(name)
        return getattr(self._inner, name)


@pytest.fixture
def mac(monkeypatch: pytest.MonkeyPatch) -> FakeRuntime:
    fake = FakeRuntime()
    monkeypatch.setattr(runtime, "runtime", lambda: fake)
    return fake


@pytest.mark.parametrize("wish", ["auto", "coreml"])
def test_coreml_is_asked_for_in_its_own_words(mac: FakeRuntime, wish: Any) -> None:
    """The provider list is explicit, every option is a string, the CPU stands behind, silent fallback is off."""
    with open_session(STARTER, Options(provider=wish)) as session:
        report = session.report
    (coreml, options), cpu = mac.offered[-1]
    assert coreml == COREML
    assert options == {
        "ModelFormat": "MLProgram",
        "MLComputeUnits": "ALL",
        "RequireStaticInputShapes": "1",
        "EnableOnSubgraphs": "0",
    }
    assert cpu == (CPU, {})
    assert not any(mac.fallback)
    assert (report.provider, report.nodes, report.partitions) == ("coreml", {"coreml": 102, "cpu": 8}, 2)
    assert not report.fell_back


def test_the_cache_folder_carries_what_the_key_leaves_out(mac: FakeRuntime, tmp_path: Path) -> None:
    """Another model, runtime or option never meets a compiled model of before."""
    wishes = [
        CoreMLOptions(cache_dir=tmp_path, model_key="a" * 64),
        CoreMLOptions(cache_dir=tmp_path, model_key="b" * 64),
        CoreMLOptions(cache_dir=tmp_path, model_key="a" * 64, compute_units="CPUAndGPU"),
    ]
    folders = set()
    for coreml in wishes:
        open_session(STARTER, Options(coreml=coreml)).close()
        folders.add(mac.offered[-1][0][1]["ModelCacheDirectory"])
    assert len(folders) == 3
    assert all(Path(folder).is_dir() and "1.99.0" in folder for folder in folders)
    open_session(STARTER, Options(coreml=CoreMLOptions(cache_dir=tmp_path))).close()
    assert "ModelCacheDirectory" not in mac.offered[-1][0][1]


def test_coreml_gets_fixed_shapes(mac: FakeRuntime, tmp_path: Path) -> None:
    """Open lengths are closed before CoreML looks, because it leaves open ones to the CPU."""
    path = network(tmp_path / "open.onnx", OPEN)
    with open_session(path, Options(input_px=(32, 48))) as session:
        assert session.shape == Shape(32, 48, fixed=True)
        assert session.run(np.zeros((1, 3, 32, 48), np.float32)).shape == (32, 48)


@pytest.mark.parametrize("wish", ["auto", "coreml"])
def test_a_refusing_coreml_falls_back_in_sight(mac: FakeRuntime, wish: Any) -> None:
    """When CoreML cannot load the network the CPU does, and the report tells why."""
    mac.refuse = "Unknown option: Colour"
    with open_session(STARTER, Options(provider=wish)) as session:
        assert session.report.provider == "cpu"
        assert "Unknown option: Colour" in session.report.note
    assert mac.offered[-1] == [(CPU, {})]


def test_a_refusing_coreml_is_an_error_where_it_must_run(mac: FakeRuntime) -> None:
    """Without permission to fall back nothing else is tried."""
    mac.refuse = "compile error"
    with pytest.raises(SessionError, match="compile error"):
        open_session(STARTER, Options(provider="coreml", allow_fallback=False))
    assert len([offer for offer in mac.offered if offer[0][0] == CPU and len(offer) == 1]) <= 1  # the probe alone


def test_coreml_without_nodes_is_the_cpu(mac: FakeRuntime) -> None:
    """Registered is not running: where CoreML took no node the report says CPU, or the start is refused."""
    mac.parts = [Part(CPU, 110)]
    with open_session(STARTER, Options(provider="auto")) as session:
        assert session.report.provider == "cpu"
        assert "no node" in session.report.note
    with pytest.raises(ConfigError, match="no node"):
        open_session(STARTER, Options(provider="coreml", allow_fallback=False))


def test_old_runtimes_cannot_prove_it(mac: FakeRuntime) -> None:
    """Where the runtime records no assignment the report has no nodes and names what is registered."""
    mac.parts = None
    with open_session(STARTER) as session:
        assert (session.report.provider, session.report.nodes) == ("coreml", {})


# -- the process --------------------------------------------------------------------------------------------------


def test_threads_reach_the_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """`threads` is the runtime's own number of threads."""
    seen: list[int] = []
    real = onnxruntime.InferenceSession

    def spy(path: str, settings: Any, **rest: Any) -> Any:
        seen.append(settings.intra_op_num_threads)
        return real(path, settings, **rest)

    monkeypatch.setattr(onnxruntime, "InferenceSession", spy)
    for threads in (0, 1):
        open_session(STARTER, Options(threads=threads)).close()
    assert seen == [0, 1]


def test_open_sessions_are_counted() -> None:
    """Whoever wants to start a process can ask whether a session forbids it."""
    assert open_count() == 0
    with open_session(STARTER):
        assert open_count() == 1
    assert open_count() == 0


PROGRAM = """
import importlib.abc, os, sys
class Look(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "onnxruntime":
            print("import", os.environ.get("ORT_DISABLE_TELEMETRY"))
sys.meta_path.insert(0, Look())
import pathlib, watcher.session
print("loaded", "onnxruntime" in sys.modules)
watcher.session.open_session(pathlib.Path(sys.argv[1])).close()
"""


def test_telemetry_is_off_before_the_import(tmp_path: Path) -> None:
    """The variable is set when onnxruntime is first imported, which is late, and nothing is left in the home."""
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(STARTER)],
        capture_output=True,
        text=True,
        env=env,
        cwd=Path(__file__).parents[1],
        timeout=60,
        check=False,
    )
    assert ended.stderr == ""
    assert ended.stdout.splitlines() == ["loaded False", "import 1"]
    assert not [found for found in tmp_path.rglob("*") if "onnxruntime" in found.name.lower()]
