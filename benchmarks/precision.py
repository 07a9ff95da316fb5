"""What does lower precision cost in accuracy? The same crops of LFW in fp32, bf16 and int8.

bf16 is emulated where the CPU has none: every activation and weight is rounded, products are added in fp32.

    python -m benchmarks.precision LFW_FOLDER [--data ~/.sameface] [--int8 BUNDLE]
"""

import argparse
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.shared.lfw import read_lfw
from sameface.model.bundles.bundle import Bundle, load_bundle
from sameface.model.data_folder import DataFolder
from sameface.model.decision.calibration import Rate
from sameface.model.decision.calibration_files import Calibrations
from sameface.model.decision.similarity import DIGITS
from sameface.model.decision.thresholds import Rule, Thresholds
from sameface.model.faces import Floats, Pixels
from sameface.model.measurement.lfw_pairs import Pair, decide_by_folds
from sameface.model.measurement.paired_rates import compare_rates
from sameface.model.measurement.scores import LabelledEmbeddings, ListedPairs
from sameface.model.photo.align import CropShape
from sameface.model.photo.embed import Embedder, open_embedder
from sameface.model.pipeline import PipelineOptions, open_face_finder
from sameface.model.runtime.device import available_cores
from sameface.model.runtime.precision.choice import Precision, bf16_fault
from sameface.model.runtime.session import open_session
from sameface.model.runtime.session_pool import SessionPool
from sameface.training.evaluation.difference import compare_folds
from sameface.training.export.fold_graph import fold_graph

FMRS = (1e-2, 1e-3, 1e-4, 1e-5)


def main() -> None:
    """Embed the same crops in every precision, and print the table."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("lfw", type=Path)
    arguments.add_argument("--data", type=Path, default=Path("~/.sameface").expanduser())
    arguments.add_argument("--int8", type=Path, action="append", default=[], help="a bundle of eight bits")
    options = arguments.parse_args()
    folder, cores = DataFolder(options.data), available_cores()
    bundle = load_bundle(folder.recognizer)
    paths = sorted((options.lfw / "images").glob("*/*.jpg"))
    crops = cut_crops(paths, bundle, folder)
    ways = {
        "fp32": open_embedder(bundle, "cpu", folder.cache, cores),
        "bf16": open_bf16(bundle, folder.cache, cores),
    }
    for place in options.int8:
        small = load_bundle(place)
        ways[small.contract.name] = open_embedder(small, "cpu", folder.cache, cores)
    rows = {name: embed(embedder, crops, name) for name, embedder in ways.items()}
    people = np.unique([path.parent.name for path in paths], return_inverse=True)[1]
    labelled = {name: LabelledEmbeddings(values, people) for name, values in rows.items()}
    pairs, thresholds = read_lfw(options.lfw), Thresholds(Calibrations(bundle))
    decided = [thresholds.for_pair(Rule(rate=fmr)).value for fmr in FMRS]
    exact = compare(pairs, dict(zip(paths, rows["fp32"], strict=True)))
    listed = list_pairs(pairs, exact)
    table = Table(
        "way",
        "cosine to fp32: mean, worst",
        "5-fold accuracy",
        f"of {len(pairs):,} pairs decided otherwise at {', '.join(f'{fmr:g}' for fmr in FMRS)}",
        *(f"FNMR at {fmr:g}" for fmr in FMRS),
    )
    for name, values in rows.items():
        cosines = np.einsum("ij,ij->i", values, rows["fp32"])
        similarities = compare(pairs, dict(zip(paths, values, strict=True)))
        changed = [np.sum((similarities >= each) != (exact >= each)) for each in decided]
        rates = compare_rates(labelled["fp32"], labelled[name], FMRS)
        cells = [f"{write(rate.second)}; difference {write(rate.difference)}" for rate in rates]
        table.add_row(
            name,
            f"{cosines.mean():.5f}, {cosines.min():.5f}",
            score(listed, replace(listed, similarities=similarities)),
            ", ".join(map(str, changed)),
            *cells,
        )
    Console(width=200).print(table)


def cut_crops(paths: list[Path], bundle: Bundle, folder: DataFolder) -> list[Pixels]:
    """The crop of the prominent face of every photo."""
    contract = bundle.contract
    finder = open_face_finder(
        PipelineOptions.in_folder(folder), CropShape(contract.template, contract.input_size)
    )
    with ThreadPoolExecutor(available_cores()) as executor:
        found = executor.map(lambda path: finder.find_one_face(path.read_bytes(), "prominent"), paths)
        return [each.faces[0].crop for each in track(found, "cutting", total=len(paths), transient=True)]


def embed(embedder: Embedder, crops: list[Pixels], name: str) -> Floats:
    """The unit embeddings (crops, dimension)."""
    blocks = range(0, len(crops), 64)
    return np.stack(
        [
            embedding.values
            for start in track(blocks, name, transient=True)
            for embedding in embedder.embed(crops[start : start + 64])
        ]
    )


def compare(pairs: list[Pair], rows: dict[Path, Floats]) -> Floats:
    """The similarity of each listed pair, as decisions take it."""
    return np.array([round(float(rows[pair.probe] @ rows[pair.reference]), DIGITS) for pair in pairs])


def list_pairs(pairs: list[Pair], similarities: Floats) -> ListedPairs:
    """The listed pairs with their people and folds, to tell what depends on who is drawn."""
    names = [[pair.probe.parent.name, pair.reference.parent.name] for pair in pairs]
    probes, references = np.unique(names, return_inverse=True)[1].reshape(-1, 2).T
    same = np.array([pair.same_person for pair in pairs])
    return ListedPairs(similarities, same, probes, references, np.array([pair.fold for pair in pairs]))


def score(exact: ListedPairs, pairs: ListedPairs) -> str:
    """The accuracy over the folds of listed pairs, and how many points more or less than the exact one's."""
    wrong, _ = decide_by_folds(pairs.similarities, pairs.same, pairs.folds)
    errors = compare_folds(exact, pairs)
    assert errors  # there are several folds
    difference = f"{-errors.value:+.2%} ({-errors.high:+.2%} to {-errors.low:+.2%})"
    return f"{1 - wrong.mean():.2%} ({wrong.sum()} wrong); difference {difference}"


def write(rate: Rate) -> str:
    """A rate and its interval in per cent."""
    return f"{rate.value:.2%} ({rate.low:.2%} to {rate.high:.2%})"


def open_bf16(bundle: Bundle, cache: Path, sessions: int) -> Embedder:
    """The recogniser in bf16, by this CPU or, where it has none, emulated."""
    fault = bf16_fault()
    print(f"bf16 is emulated: {fault}" if fault else "bf16 by this CPU")
    if fault:
        return emulate(bundle, sessions)
    return open_embedder(bundle, "cpu", cache, sessions, precision=Precision("bf16"))


def emulate(bundle: Bundle, sessions: int) -> Embedder:
    """The recogniser with all numbers between its operators rounded to bf16."""
    network = fold_graph(bundle)  # of opset 13, the first that casts to bf16
    round_everything(network)
    content = bytes(network.SerializeToString())
    return Embedder(bundle, SessionPool([open_session(content, "cpu") for _ in range(sessions)], "cpu", 1))


def round_everything(network: ModelProto) -> None:
    """Cast every float input of every operator to bf16 and back."""
    floats = {each.name for each in network.graph.initializer if each.data_type == TensorProto.FLOAT}
    known = (
        floats | {network.graph.input[0].name} | {name for node in network.graph.node for name in node.output}
    )
    nodes, done = [], set()
    for node in network.graph.node:
        for place, name in enumerate(node.input):
            if name not in known:
                continue
            if name not in done:
                nodes.append(helper.make_node("Cast", [name], [f"{name}_bf16"], to=TensorProto.BFLOAT16))
                nodes.append(
                    helper.make_node("Cast", [f"{name}_bf16"], [f"{name}_back"], to=TensorProto.FLOAT)
                )
                done.add(name)
            node.input[place] = f"{name}_back"
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        nodes.append(copy)
    del network.graph.node[:]
    network.graph.node.extend(nodes)


if __name__ == "__main__":
    main()
