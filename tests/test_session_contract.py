"""One suite for every session: the fake of the tests and the real one on the CPU keep the same promises."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from fake_session import FakeSession
from networks import OPEN, network
from waiting import until

from watcher import session as sessions
from watcher.errors import SessionError, WrongThread
from watcher.session import Options, SessionLike, Shape, open_session

KINDS = ("fake", "fake-open", "fake-lanes", "real", "real-open", "real-lanes")


@pytest.fixture(params=KINDS)
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionLike]:
    """16x24 networks whose map is the mean of the channels."""
    if request.param == "fake":
        made: SessionLike = FakeSession()
    elif request.param == "fake-open":
        made = FakeSession(Shape(16, 24, fixed=False))
    elif request.param == "fake-lanes":
        made = FakeSession(lanes=2)
    elif request.param == "real-lanes":
        made = open_session(network(tmp_path / "net.onnx"), Options(provider="cpu", threads=2, lanes=2))
        assert made.lanes == 2
    elif request.param == "real":
        made = open_session(network(tmp_path / "net.onnx"))
    else:
        made = open_session(network(tmp_path / "net.onnx", OPEN), Options(input_px=(16, 24)))
    yield made
    made.close()


def random_tensor(height: int = 16, width: int = 24) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng(1).random((1, 3, height, width), np.float32)


def in_a_thread(call: Callable[[], object]) -> BaseException | None:
    """What ``call`` raises in another thread."""
    caught: list[BaseException | None] = [None]

    def body() -> None:
        try:
            call()
        except BaseException as error:
            caught[0] = error

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    return caught[0]


def test_runs(session: SessionLike) -> None:
    """(1, 3, h, w) float32 in, (h, w) float32 out, and the numbers are the network's."""
    tensor = random_tensor()
    made = session.run(tensor)
    assert made.shape == (16, 24)
    assert made.dtype == np.float32
    np.testing.assert_allclose(made, tensor[0].mean(axis=0), rtol=1e-5)


def test_as_many_as_there_are_lanes(session: SessionLike) -> None:
    """So many runs may be under way, and each gives the map of its own tensor; a refused one harms no other."""
    tensors = [random_tensor() + 3 * lane for lane in range(session.lanes)]
    for _ in range(50):
        runs = [session.begin(tensor) for tensor in tensors]
        for run, tensor in zip(runs, tensors, strict=True):
            np.testing.assert_allclose(run.result(), tensor[0].mean(axis=0), rtol=1e-5)
            assert run.over
            assert run.ended_s is not None
    good, refused = session.begin(tensors[0]), session.begin(np.zeros((3, 16, 24), np.float32))
    with pytest.raises(SessionError, match="the tensor is"):
        refused.result()
    np.testing.assert_allclose(good.result(), tensors[0][0].mean(axis=0), rtol=1e-5)


def test_a_tensor_may_be_forgotten_once_its_run_has_begun(session: SessionLike) -> None:
    """Its memory is not given to anybody else before the run is over (onnxruntime 1.16 does not see to that)."""
    wanted = random_tensor()[0].mean(axis=0)
    for _ in range(50):
        runs = [session.begin(random_tensor()) for _ in range(session.lanes)]
        others = [np.full((1, 3, 16, 24), 9, np.float32) for _ in range(8)]
        for run in runs:
            np.testing.assert_allclose(run.result(), wanted, rtol=1e-5)
        assert len(others) == 8


def test_no_thread_of_the_runtime_is_taken_for_ours(session: SessionLike) -> None:
    """What the runtime's threads report leaves no trace of them among the threads of the program."""
    before = threading.enumerate()
    session.begin(random_tensor()).result()
    assert [thread for thread in threading.enumerate() if thread not in before and thread.name != "lane"] == []


def test_a_map_belongs_to_its_caller(session: SessionLike) -> None:
    """A second run does not write into the map of the first."""
    first = session.run(random_tensor())
    before = first.copy()
    session.run(random_tensor() + 5)
    np.testing.assert_array_equal(first, before)


def test_says_its_shape(session: SessionLike) -> None:
    """The shape is known before anything has run."""
    assert (session.shape.height_px, session.shape.width_px) == (16, 24)


def test_free_sizes_run_as_they_come(session: SessionLike) -> None:
    """Where the size is open each run may bring its own; where it is fixed another one is refused."""
    if session.shape.fixed:
        with pytest.raises(SessionError):
            session.run(random_tensor(32, 24))
    else:
        assert session.run(random_tensor(32, 40)).shape == (32, 40)


@pytest.mark.parametrize(
    "tensor",
    [
        np.zeros((3, 16, 24), np.float32),
        np.zeros((2, 3, 16, 24), np.float32),
        np.zeros((1, 1, 16, 24), np.float32),
        np.zeros((1, 3, 16, 24), np.float64),
        np.zeros((1, 3, 16, 24), np.uint8),
    ],
)
def test_refuses_other_tensors(session: SessionLike, tensor: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> None:
    """No batch, no gray, no other dtype: the mistake is named, the session lives on."""
    with pytest.raises(SessionError, match="the tensor is"):
        session.run(tensor)
    session.run(random_tensor())


@pytest.mark.parametrize("verb", ["run", "begin", "warm_up", "close"])
def test_only_its_owner_touches_it(session: SessionLike, verb: str) -> None:
    """Every other thread is refused, and the owner goes on undisturbed."""
    calls: dict[str, Callable[[], object]] = {
        "run": lambda: session.run(random_tensor()),
        "begin": lambda: session.begin(random_tensor()),
        "warm_up": session.warm_up,
        "close": session.close,
    }
    error = in_a_thread(calls[verb])
    assert isinstance(error, WrongThread)
    assert error.blame == "session"
    session.run(random_tensor())


def test_warm_up_is_reported(session: SessionLike) -> None:
    """Warming up measures a run and puts it into the report."""
    assert session.report.warmup_ms == 0
    took_ms = session.warm_up(2)
    assert took_ms > 0
    assert session.report.warmup_ms == took_ms


def test_closing_waits_for_what_is_under_way(session: SessionLike) -> None:
    """The network is not pulled away under a run; its map can still be had."""
    runs = [session.begin(random_tensor()) for _ in range(session.lanes)]
    session.close()
    assert all(run.over for run in runs)
    for run in runs:
        np.testing.assert_allclose(run.result(), random_tensor()[0].mean(axis=0), rtol=1e-5)


def test_closing_waits_for_whoever_told_of_the_end(tmp_path: Path) -> None:
    """The end of the network waits for the runtime's threads with the interpreter in its hand: a thread that still has
    to come back from our function must have come back before."""
    session = open_session(network(tmp_path / "net.onnx"), Options(provider="cpu", threads=2, lanes=2))
    inside, gate = threading.Event(), threading.Event()

    def ended() -> None:
        inside.set()
        gate.wait()

    run = session.begin(random_tensor(), ended)
    assert inside.wait(30)
    assert run.over
    assert not run.left
    opener = threading.Timer(0.2, gate.set)
    opener.start()
    session.close()  # without waiting it would never return
    assert gate.is_set()
    opener.join()
    assert run.left


@pytest.mark.parametrize("fault", ["the runtime's", "no map"])
def test_closing_after_a_run_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """An error that is still known does not keep the runtime's thread, or what it was told with, in the session."""
    session = open_session(network(tmp_path / "net.onnx"), Options(provider="cpu", threads=2, lanes=2))
    if fault == "no map":
        monkeypatch.setattr(sessions, "_one_map", refuse_map)
        run = session.begin(random_tensor())
    else:
        monkeypatch.setattr(session, "_check_tensor", lambda _: None)
        run = session.begin(random_tensor()[:, :, :8])  # the network wants it larger
    with pytest.raises(SessionError) as kept:
        run.result()
    monkeypatch.setattr(sessions, "_LEAVING_S", -1.0)  # no time to wait in
    until(lambda: run.left)
    session.close()
    assert sessions._never_ended == []
    assert kept.value is not None


def refuse_map(_result: object) -> None:
    raise SessionError("the network returned two maps")


def test_closed_is_closed(session: SessionLike) -> None:
    """A closed session may be closed again, and runs no more."""
    session.close()
    session.close()
    with pytest.raises(SessionError, match="closed"):
        session.run(random_tensor())
