"""The commands about networks, on networks that misbehave."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HURRIED = """
from sameface.cli import main
from sameface.model.commands import bundles

if __name__ == "__main__":
    bundles.TRIAL_SECONDS = 3
    main()
"""


def build_endless(path: Path) -> Path:
    """A recogniser with a loop that runs as often as a 64-bit number can say."""
    yes = helper.make_tensor_value_info("yes", TensorProto.BOOL, [])
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["yes"], ["go_on"]),
            helper.make_node("Add", ["sum", "one"], ["next"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, []),
            yes,
            helper.make_tensor_value_info("sum", TensorProto.FLOAT, [1, 4]),
        ],
        [
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, [1, 4]),
        ],
    )
    weights = [
        numpy_helper.from_array(np.array(2**62), "turns"),
        numpy_helper.from_array(np.array(True), "always"),
        numpy_helper.from_array(np.ones((1, 4), np.float32), "one"),
    ]
    nodes = [
        helper.make_node("ReduceMean", ["data"], ["mean"], axes=[2, 3], keepdims=0),
        helper.make_node("Slice", ["mean", "from", "to", "axis"], ["first"]),
        helper.make_node("Concat", ["first", "mean"], ["start"], axis=1),
        helper.make_node("Loop", ["turns", "always", "start"], ["embedding"], body=body),
    ]
    weights += [
        numpy_helper.from_array(np.array([n]), name) for name, n in (("from", 0), ("to", 1), ("axis", 1))
    ]
    graph = helper.make_graph(
        nodes,
        "endless",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, [1, 3, 112, 112])],
        [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, [1, 4])],
        weights,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


def test_a_network_that_never_ends_is_refused_in_time(data: Path, tmp_path: Path) -> None:
    fields = json.loads((data / "models" / "recogniser" / "bundle.json").read_text())
    contract = {key: value for key, value in fields.items() if key not in ("file", "sha256")}
    (tmp_path / "contract.json").write_text(json.dumps(contract | {"name": "endless", "dimension": 4}))
    network = build_endless(tmp_path / "endless.onnx")
    words = [
        "pull",
        "--from",
        str(network),
        "--contract",
        str(tmp_path / "contract.json"),
        "--data",
        str(tmp_path),
    ]
    done = subprocess.run(
        [sys.executable, "-c", HURRIED, *words], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, "did not finish" in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "models").exists()
