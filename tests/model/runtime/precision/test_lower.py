"""A lower precision is used only where faces prove that embeddings stay the same, and where it is faster."""

import json
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from sameface.model.bundles.bundle import Bundle
from sameface.model.errors import PrecisionUnavailable
from sameface.model.photo.embed import Embedder
from sameface.model.runtime import openvino, prepare_graph
from sameface.model.runtime.graph_rewrites import strip_initialiser_inputs
from sameface.model.runtime.precision import lower as lowering
from sameface.model.runtime.precision.choice import AUTO, EXACT, Offer, Precision
from sameface.model.runtime.precision.faces import load_faces
from sameface.model.runtime.precision.lower import try_lower
from sameface.model.runtime.precision.proof import LEAST_COSINE, compare_embeddings
from sameface.model.runtime.prepare_graph import describe_precision
from sameface.model.runtime.session import open_session
from sameface.model.runtime.session_pool import open_sessions
from sameface.model.runtime.variants import Variant
from tests.networks import build_detector


def round_numbers(bundle: Bundle, kind: int) -> bytes:
    """The network with a cast to `kind` and back before its convolution, as engines of lower precision do."""
    network = onnx.load(bundle.path)
    [place] = [place for place, node in enumerate(network.graph.node) if node.op_type == "Conv"]
    network.graph.node[place].input[0] = "rounded"
    network.graph.node.insert(place, helper.make_node("Cast", ["grid"], ["low"], to=kind))
    network.graph.node.insert(place + 1, helper.make_node("Cast", ["low"], ["rounded"], to=TensorProto.FLOAT))
    return bytes(network.SerializeToString())


def turn_embeddings(bundle: Bundle) -> bytes:
    """The network with other weights: a precision that ruins embeddings."""
    network = onnx.load(bundle.path)
    [weights] = [weight for weight in network.graph.initializer if weight.name == "projection"]
    values = numpy_helper.to_array(weights)
    noise = np.random.default_rng(3).normal(size=values.shape) * np.abs(values).mean() / 4
    weights.CopyFrom(numpy_helper.from_array((values + noise).astype(np.float32), "projection"))
    return bytes(network.SerializeToString())


@pytest.fixture
def race(monkeypatch: pytest.MonkeyPatch):
    """Offer a lower precision as fast as is said, as by a machine that has one."""

    def offer_bf16(wanted: Precision, _: str) -> Offer | None:
        return None if wanted == EXACT else Offer("bf16")

    def offer(network: bytes, *, seconds: float = 0.5) -> None:
        monkeypatch.setattr(prepare_graph, "find_offer", offer_bf16)
        monkeypatch.setattr(lowering, "lower", lambda *_: Variant(network, precision="bf16"))
        monkeypatch.setattr(lowering, "time_sessions", lambda *_: [seconds, 1.0])

    return offer


def test_embeddings_in_bf16_agree_with_exact_ones(bundle: Bundle) -> None:
    exact, rounded = (
        open_session(network, "cpu") for network in (bundle.path, round_numbers(bundle, TensorProto.BFLOAT16))
    )
    agreement = compare_embeddings(bundle, exact, rounded, load_faces(bundle))
    assert agreement.faces == 64
    assert LEAST_COSINE < agreement.worst_cosine <= agreement.mean_cosine < 1
    assert agreement.holds


def test_other_embeddings_do_not(bundle: Bundle) -> None:
    exact, other = (open_session(network, "cpu") for network in (bundle.path, turn_embeddings(bundle)))
    agreement = compare_embeddings(bundle, exact, other, load_faces(bundle))
    assert not agreement.holds
    assert agreement.worst_cosine < LEAST_COSINE


def test_a_proved_precision_is_used_and_its_proof_kept(bundle: Bundle, tmp_path: Path, race) -> None:
    race(round_numbers(bundle, TensorProto.BFLOAT16))
    pool = open_sessions(bundle, "cpu", tmp_path, precision=AUTO)
    assert (pool.precision, pool.proof.used, pool.proof.fault) == ("bf16", True, None)
    assert (pool.proof.crops_per_second, pool.proof.exact_crops_per_second) == (2.0, 1.0)
    again = open_sessions(bundle, "cpu", tmp_path, precision=AUTO)
    assert again.proof == pool.proof
    assert describe_precision(bundle, tmp_path) == {"precision": "bf16", "proof": pool.proof.to_dict()}
    embedded = Embedder(bundle, pool).embed(list(load_faces(bundle)[:2]))
    assert {embedding.identity for embedding in embedded} == {bundle.identity}
    assert open_sessions(bundle, "cpu", tmp_path, precision=EXACT).precision == "exact"


def test_the_precision_that_was_used_last_is_shown(bundle: Bundle, tmp_path: Path, race) -> None:
    race(round_numbers(bundle, TensorProto.BFLOAT16))
    for precision in (AUTO, EXACT):
        open_sessions(bundle, "cpu", tmp_path, precision=precision)
    for report in tmp_path.glob("*.json"):
        made = 1 if "-auto-" in report.name else 2
        os.utime(report, (made, made))
    assert describe_precision(bundle, tmp_path) == {"precision": "exact", "proof": None}
    pool = open_sessions(bundle, "cpu", tmp_path, precision=AUTO)
    assert describe_precision(bundle, tmp_path) == {"precision": "bf16", "proof": pool.proof.to_dict()}


def test_embeddings_that_differ_are_never_used(bundle: Bundle, tmp_path: Path, race) -> None:
    race(turn_embeddings(bundle))
    pool = open_sessions(bundle, "cpu", tmp_path, precision=AUTO)
    assert pool.precision == "exact"
    assert not pool.proof.used
    assert "embeddings differ: cosine 0." in pool.proof.fault
    with pytest.raises(PrecisionUnavailable, match="tiny-recogniser cannot run in bf16: embeddings differ"):
        open_sessions(bundle, "cpu", tmp_path, precision=Precision("bf16"))


def test_what_is_slower_is_used_only_if_it_was_asked_for(bundle: Bundle, tmp_path: Path, race) -> None:
    race(round_numbers(bundle, TensorProto.BFLOAT16), seconds=1.0)
    pool = open_sessions(bundle, "cpu", tmp_path, precision=AUTO)
    assert (pool.precision, pool.proof.fault) == ("exact", "it is not faster here")
    assert "not used: it is not faster here" in pool.proof.describe()
    assert open_sessions(bundle, "cpu", tmp_path, precision=Precision("bf16")).precision == "bf16"


def test_a_network_that_does_not_run_lower_stays_exact(bundle: Bundle, tmp_path: Path, race) -> None:
    race(b"no network")
    pool = open_sessions(bundle, "cpu", tmp_path, precision=AUTO)
    assert pool.precision == "exact"
    assert "does not run in it" in pool.proof.fault


def test_where_there_is_none_the_exact_graph_is_shared(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_sessions(bundle, "cpu", tmp_path)
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(prepare_graph, "find_offer", lambda *_: Offer("bf16", "this CPU has none"))
    pool = open_sessions(bundle, "cpu", tmp_path, precision=AUTO)
    assert (pool.precision, pool.proof.describe()) == ("exact", "no bf16: this CPU has none")
    assert sorted(tmp_path.iterdir()) == before
    assert json.loads(before[0].read_text())["proof"] is None


def test_a_detector_stays_exact(tmp_path: Path, race) -> None:
    race(b"never opened")
    pool = open_sessions(build_detector(tmp_path), "cpu", tmp_path / "cache", precision=AUTO)
    assert (pool.precision, pool.proof) == ("exact", None)


def test_fp16_is_a_graph_of_its_own(bundle: Bundle) -> None:
    """It runs on a CPU, too, which converts every number, so only its embeddings are looked at here."""
    network = onnx.load(bundle.path)
    strip_initialiser_inputs(network)
    exact = Variant(bytes(network.SerializeToString()))
    halved, proof = try_lower(bundle, "cpu", exact, "fp16", load_faces(bundle)[:16])
    kinds = {weight.data_type for weight in onnx.load_from_string(halved.network).graph.initializer}
    assert TensorProto.FLOAT16 in kinds
    assert proof.worst_cosine > LEAST_COSINE


@pytest.mark.skipif(openvino.find_version() is None, reason="the extra `openvino` is not installed")
def test_openvino_is_not_believed_where_the_cpu_has_no_bf16(bundle: Bundle) -> None:
    if "BF16" in openvino.list_capabilities():
        assert openvino.OpenVinoSession(bundle.path, "bf16")
    else:
        with pytest.raises(PrecisionUnavailable, match="asked for bf16 and computes in"):
            openvino.OpenVinoSession(bundle.path, "bf16")
