"""Training: the scenes can be trusted, the halves are apart, the measures mean what they say, and runs resume."""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import CORPUS

from training import measures, shards
from training.clutter import SHARES, richer
from training.materials import ROLES, Array, Richer, material, paint
from training.render import SIDE, render
from training.scenes import FAMILIES
from training.solids import NOTHING, solid
from training.tones import other_tones
from training.truth import SPLIT, Pair, halves, read_pair


def _pair(inverse: Array) -> Pair:
    picture = np.zeros((*inverse.shape, 3), dtype=np.uint8)
    return Pair("made", picture, inverse, np.ones(inverse.shape, dtype=bool), metric=True, family="made")


def _slope() -> Array:
    return np.tile(np.linspace(0.1, 1, 40, dtype=np.float32)[:, None], (1, 30))


def test_same_seed_same_scene() -> None:
    """A scene depends on its seed alone, so that a run can be repeated; another seed gives another."""
    one, two, other = (render(np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert one[0].shape == (SIDE, SIDE, 3)
    assert np.array_equal(one[0], two[0])
    assert np.array_equal(one[1], two[1])
    assert not np.array_equal(one[0], other[0])


def test_fuller_scenes() -> None:
    """The same draws give the same scene, and it is another than without them; depth is known everywhere."""
    first, again = (render(Richer(np.random.PCG64([30, 1, 0]))) for _ in range(2))
    plain = render(np.random.Generator(np.random.PCG64([30, 1, 0])))
    assert np.array_equal(first[0], again[0])
    assert np.array_equal(first[1], again[1])
    assert not np.array_equal(first[0], plain[0])
    assert np.isfinite(first[1]).all()


@pytest.mark.parametrize("role", [*ROLES, "print"])
def test_what_is_painted_is_a_colour(role: str) -> None:
    """Stains and prints stay within what light a surface can give back, 0..1, near and far."""
    where = np.random.default_rng(1).uniform(-3, 3, (500, 2)).astype(np.float32)
    for seed in range(12):
        painted = paint(material(Richer(np.random.PCG64(seed)), role), where, np.full(500, 0.01, np.float32))
        assert (painted.shape, painted.dtype) == ((500, 3), np.dtype(np.float32))
        assert 0 <= painted.min() <= painted.max() <= 1


def test_every_family_can_be_filled() -> None:
    """Rooms and portraits get their clutter, and the two families of their own can be made."""
    found = {richer(Richer(np.random.PCG64([31, index]))).family for index in range(80)}
    assert found == set(SHARES)
    assert sum(SHARES.values()) == pytest.approx(1)


def test_other_tones() -> None:
    """Still a picture, 0..1, of the same size; another one each time, and the same for the same draws."""
    picture = np.random.default_rng(0).random((48, 48, 3)).astype(np.float32)
    shown = [other_tones(np.random.default_rng(seed), picture) for seed in range(40)]
    for one in shown:
        assert (one.shape, one.dtype) == (picture.shape, np.dtype(np.float32))
        assert 0 <= one.min() <= one.max() <= 1
    assert np.array_equal(shown[3], other_tones(np.random.default_rng(3), picture))
    assert len({one.tobytes() for one in shown}) > 30


@pytest.mark.parametrize(("round_", "expected"), [(True, 3.0), (False, 3.0)])
def test_ray_meets_the_near_side(round_: bool, expected: float) -> None:
    """A body of half size 2 whose centre is 5 m ahead is met at 3 m, facing the eye; beside it, nothing."""
    body = solid(round_, np.array([0.0, 0, 5]), np.eye(3) * 2, material(np.random.default_rng(0), "wall"))
    ways = np.array([[0.01, 0.01, 1], [2, 0, 1]], dtype=np.float32)
    met = body.hit(np.zeros(3, dtype=np.float32), ways)
    assert met[0] == pytest.approx(expected, abs=1e-2)
    assert met[1] == NOTHING
    normal, _ = body.surface(met[:1, None] * ways[:1])
    assert normal[0] == pytest.approx([0, 0, -1], abs=2e-2)


def test_people_and_pets_are_a_quarter() -> None:
    """At least a quarter of the pictures are made for people, portraits or pets, and the shares are whole."""
    assert FAMILIES["people"] + FAMILIES["portrait"] + FAMILIES["pet"] >= 0.25
    assert sum(FAMILIES.values()) == pytest.approx(1)


def test_halves_are_apart() -> None:
    """No pair is in both halves, nor a rendered one in either."""
    halved = tomllib.loads(SPLIT.read_text(encoding="utf-8"))
    assert not set(halved["selection"]) & set(halved["test"])
    assert not [name for half in halved.values() for name in half if "iclnuim" in name]


@pytest.mark.parametrize(("sign", "ordinal"), [(1, 1.0), (-1, 0.0), (0, 0.5)])
def test_ordinal(sign: int, ordinal: float) -> None:
    """The truth itself is ordered rightly, its opposite wrongly, a constant by half."""
    assert measures.measures(sign * _slope(), _pair(_slope()))["ordinal"] == pytest.approx(ordinal)


def test_scale_and_shift_do_not_matter() -> None:
    """A map that is right but for scale and shift has delta 1 and no error; a constant has both wrong."""
    right = measures.measures(7 * _slope() + 3, _pair(_slope()))
    assert right["delta1"] == pytest.approx(1)
    assert right["absrel"] == pytest.approx(0, abs=1e-4)
    wrong = measures.measures(0 * _slope(), _pair(_slope()))
    assert wrong["delta1"] < 0.6
    assert wrong["absrel"] > 0.3


def test_presentation_is_scaled() -> None:
    """What is shown lies in 0..1, and its truth is scaled to 0..1 with little beyond, whatever the unit was."""
    picture, truth, _ = render(np.random.default_rng(5))
    image, depth = shards.presentation(np.random.default_rng(0), picture, truth, 64)
    assert image.shape == (3, 64, 64)
    assert 0 <= image.min() <= image.max() <= 1
    assert -0.1 <= depth.min() <= depth.max() <= 1.2
    assert np.percentile(depth, 99) == pytest.approx(1, abs=0.1)


@pytest.mark.needs_corpus
@pytest.mark.skipif(not (CORPUS / "depth").is_dir(), reason="the shared corpus is not beside the project")
def test_real_pair() -> None:
    """A room measured in metres is read as inverse metres between 0.1 and 2, nearly everywhere."""
    pair = read_pair(CORPUS / "depth" / halves()["selection"][0])
    assert pair.metric
    assert pair.known.mean() > 0.9
    assert 0.1 < np.median(pair.inverse[pair.known]) < 2


def test_learns_and_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was ended goes on from its checkpoint to the very weights of a run that was not."""
    torch = pytest.importorskip("torch", reason="torch is not installed (`make starter` does it)")
    from training import train

    monkeypatch.setattr(shards, "SCENES", 4)
    monkeypatch.setattr(train, "BATCH", 2)
    monkeypatch.setattr(train, "SIDE", 64)
    shards.write_shard(tmp_path, None, 0)
    whole, ended = tmp_path / "whole.pt", tmp_path / "ended.pt"
    torch.set_num_threads(1)
    train.train(tmp_path, whole, train.Recipe(8))
    with pytest.MonkeyPatch.context() as power:
        power.setattr(train, "KEEP_S", -1.0)
        power.setattr(train, "save", _falls_after(train.save, 2))
        with pytest.raises(KeyboardInterrupt):
            train.train(tmp_path, ended, train.Recipe(8))
    train.train(tmp_path, ended, train.Recipe(8))
    one, two = (torch.load(path, weights_only=True) for path in (whole, ended))
    assert one["step"] == two["step"] == 4
    assert all(torch.equal(value, two["mean"][name]) for name, value in one["mean"].items())
    train.train(tmp_path, tmp_path / "begun.pt", train.Recipe(2, rate=0.0, begin=whole))
    begun = torch.load(tmp_path / "begun.pt", weights_only=True)["net"]
    learnt = [name for name in begun if name.endswith(("weight", "bias"))]
    assert all(torch.equal(begun[name], one["mean"][name]) for name in learnt)


@pytest.mark.parametrize("both_ways", [False, True])
def test_exported_operators(both_ways: bool, tmp_path: Path) -> None:
    """The exported graph has opset 17, the promised input and output, and only operators that CoreML's list names."""
    torch = pytest.importorskip("torch", reason="torch is not installed (`make starter` does it)")
    import onnx

    from training.export import export
    from training.network import Starter
    from training.train import SIDE as SHOWN

    torch.save({"mean": Starter(SHOWN).state_dict()}, tmp_path / "c.pt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter that is used is the old one, and says so
        export(tmp_path / "c.pt", tmp_path / "starter.onnx", both_ways)
    model = onnx.load(tmp_path / "starter.onnx")
    allowed = {"Conv", "Relu", "Add", "Sub", "Mul", "Div", "Concat", "Resize", "GlobalAveragePool", "Reshape", "Cast"}
    assert {node.op_type for node in model.graph.node} <= allowed | {
        "Constant",
        "Identity",
    }  # equal weights of an untrained network are shared
    assert model.opset_import[0].version == 17
    shapes = [[d.dim_value for d in v.type.tensor_type.shape.dim] for v in (*model.graph.input, *model.graph.output)]
    assert shapes == [[1, 3, SHOWN, SHOWN], [1, SHOWN, SHOWN]]
    assert (tmp_path / "starter.onnx").stat().st_size < 8_000_000


def test_a_second_head_begins_with_nothing_to_say() -> None:
    """Put on a network that has learnt, it changes nothing until it has learnt something itself."""
    torch = pytest.importorskip("torch", reason="torch is not installed (`make starter` does it)")
    from training.network import Starter

    torch.manual_seed(0)
    net, two = Starter(64).eval(), Starter(64, fine=True).eval()
    missing = two.load_state_dict(net.state_dict(), strict=False).missing_keys
    assert missing
    assert all(name.startswith("fine.") for name in missing)
    picture = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(net(picture), two(picture))
        two.fine[2].bias.fill_(0.5)
        assert torch.allclose(net(picture) + 0.5, two(picture))


def test_mirror_image_of_the_network() -> None:
    """The mirrored network says of a picture what the network says of its mirror image; their mean is even."""
    torch = pytest.importorskip("torch", reason="torch is not installed (`make starter` does it)")
    from training.network import Starter
    from training.twin import BothWays, mirrored

    torch.manual_seed(0)
    net = Starter(64).eval()
    picture = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        turned = net(picture.flip(3)).flip(2)
        assert (mirrored(net)(picture) - turned).abs().max() < 1e-5
        assert (net(picture) - turned).abs().max() > 1e-4
        even = BothWays(net)
        assert (even(picture) - even(picture.flip(3)).flip(2)).abs().max() < 1e-5


def _falls_after(save: Callable[[Path, dict[str, Any]], None], calls: int) -> Callable[[Path, dict[str, Any]], None]:
    """``save`` that ends the run after so many checkpoints."""
    done = 0

    def saved(path: Path, what: dict[str, Any]) -> None:
        nonlocal done
        save(path, what)
        done += 1
        if done == calls:
            raise KeyboardInterrupt

    return saved
