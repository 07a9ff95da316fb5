"""The index: whatever finds the candidates, the answers are those of comparing everything."""

import logging

import faiss
import numpy as np
import pytest

from sameface.model.errors import DeviceUnavailable
from sameface.model.faces import Floats
from sameface.model.gallery.index import face_index as index_module
from sameface.model.gallery.index import faiss_search as candidates_module
from sameface.model.gallery.index.face_index import FaceIndex
from sameface.model.gallery.index.faiss_search import select_search_device
from sameface.model.store.records import FaceBlock, FaceChanges
from tests.model.people import people_like, random_units

DIMENSION = 16


def to_changes(
    sequence: int, embeddings: Floats, first_face: int = 1, gone: tuple[int, ...] = ()
) -> FaceChanges:
    """Person n has the faces n * faces + first_face ..."""
    people, faces, _ = embeddings.shape
    keys = np.arange(people * faces) + first_face
    rows = FaceBlock(keys, np.repeat(np.arange(people), faces), embeddings.reshape(-1, DIMENSION))
    return FaceChanges(sequence, rows, np.array(gone, np.int64))


def filled(embeddings: Floats, gone: tuple[int, ...] = ()) -> FaceIndex:
    index = FaceIndex(DIMENSION)
    index.follow(1, lambda _: [to_changes(1, embeddings, gone=gone)])
    return index


def best_people(embeddings: Floats, probes: Floats, limit: int) -> list[list[int]]:
    best = np.einsum("pfd,nd->npf", embeddings, probes).max(axis=2)
    return np.argsort(-best, axis=1)[:, :limit].tolist()


@pytest.fixture(autouse=True)
def _small_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every gallery of more than 200 faces is searched in cells."""
    monkeypatch.setattr(candidates_module, "EXACT_ROWS", 200)
    monkeypatch.setattr(index_module, "DEAD_ROWS", 10)


def test_cells_find_the_same_people_with_the_same_similarities() -> None:
    embeddings = people_like(300, 3, DIMENSION)
    index, probes = filled(embeddings), people_like(60, 1, DIMENSION, seed=0)[:, 0]
    exact = index.search(probes, 5)
    assert index.needs_rebuilding
    index.rebuild()
    assert index.kind == "ivf"
    assert not index.needs_rebuilding
    found = index.search(probes, 5)
    assert [hits[0].person for hits in found] == [hits[0].person for hits in exact]
    for hit in (hit for hits in found for hit in hits):  # exact, not of half-precision copies
        [probe] = [probes[place] for place, hits in enumerate(found) if hit in hits][:1]
        row = embeddings.reshape(-1, DIMENSION)[hit.face - 1]
        assert hit.similarity == pytest.approx(float(row @ probe), abs=1e-6)


def test_a_search_for_more_people_than_cells_hold_compares_everything() -> None:
    embeddings = people_like(300, 1, DIMENSION)
    index, probes = filled(embeddings), random_units(3, DIMENSION, 5)
    index.rebuild()
    found = index.search(probes, 300)
    assert [[hit.person for hit in hits] for hits in found] == best_people(embeddings, probes, 300)


def test_one_person_with_many_faces_does_not_hide_the_others() -> None:
    many = people_like(1, 900, DIMENSION)
    index = filled(many)
    index.rebuild()
    other = random_units(1, DIMENSION, 77)
    index.follow(
        2, lambda _: [FaceChanges(2, FaceBlock(np.array([5000]), np.array([1]), other), np.array([], int))]
    )
    [hits] = index.search(many[0, :1], 2)
    assert [hit.person for hit in hits] == [0, 1]


def test_changes_after_the_cells_were_built_are_found() -> None:
    embeddings = people_like(300, 1, DIMENSION)
    index = filled(embeddings[:250])
    index.rebuild()
    late = to_changes(2, embeddings[250:], first_face=1000, gone=(1, 2, 3))
    index.follow(2, lambda _: [late])
    assert index.size == 297
    assert not index.columns.embeddings[~index.columns.alive].any()  # zeroed at once
    [hits] = index.search(embeddings[260], 1)
    assert hits[0].face == 1010
    assert all(hit.face != 1 for hit in index.search(embeddings[0], 50)[0])


def test_rows_that_die_or_come_during_a_rebuild_are_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    embeddings = people_like(300, 1, DIMENSION)
    index = filled(embeddings[:250])
    build = index_module.build_faiss_index

    def build_while_the_world_goes_on(*arguments: object) -> object:
        index.follow(2, lambda _: [to_changes(2, embeddings[250:], first_face=1000, gone=(7,))])
        return build(*arguments)

    monkeypatch.setattr(index_module, "build_faiss_index", build_while_the_world_goes_on)
    index.rebuild()
    assert (index.sequence, index.size, index.kind) == (2, 299, "ivf")
    assert index.search(embeddings[270], 1)[0][0].face == 1020
    assert all(hit.face != 7 for hit in index.search(embeddings[6], 50)[0])
    assert index.faiss_index.ntotal == index.columns.count


def test_dead_rows_are_cleared_away_in_batches() -> None:
    embeddings = people_like(100, 1, DIMENSION)
    index = filled(embeddings, gone=tuple(range(1, 11)))
    assert not index.needs_rebuilding
    index.follow(2, lambda _: [FaceChanges(2, to_changes(0, embeddings[:0]).came, np.array([11]))])
    assert index.needs_rebuilding
    index.rebuild()
    assert index.columns.count == index.size == 89
    found = index.search(embeddings[11:, 0], 1)
    assert [hits[0].face for hits in found] == list(range(12, 101))


def test_means_follow_every_change() -> None:
    embeddings = people_like(40, 4, DIMENSION)
    index = filled(embeddings)

    def expect_means(faces: dict[int, list[int]]) -> None:
        flat = embeddings.reshape(-1, DIMENSION)
        probe = random_units(1, DIMENSION, 3)
        sums = {person: flat[[face - 1 for face in held]].sum(0) for person, held in faces.items()}
        exact = {person: float(probe[0] @ total / np.linalg.norm(total)) for person, total in sums.items()}
        [hits] = index.search_means(probe, 100)
        assert {hit.person for hit in hits} == set(exact)
        for hit in hits:
            assert hit.similarity == pytest.approx(exact[hit.person], abs=1e-5)
            assert hit.face % 1000 in faces[hit.person]

    faces = {person: [person * 4 + place + 1 for place in range(4)] for person in range(40)}
    expect_means(faces)
    gone = (1, 2, 5, 6, 7, 8)
    index.follow(2, lambda _: [FaceChanges(2, to_changes(0, embeddings[:0]).came, np.array(gone))])
    faces[0] = [3, 4]
    del faces[1]
    expect_means(faces)
    for sequence, (person, face) in enumerate([(1, 5), (100, 8), (50, 6), (50, 7)], 3):
        row = FaceBlock(
            np.array([face]), np.array([person]), embeddings.reshape(-1, DIMENSION)[face - 1 : face]
        )
        came = FaceChanges(
            sequence, FaceBlock(row.faces + 1000, row.people, row.embeddings), np.array([], int)
        )
        index.follow(sequence, lambda _, came=came: [came])
        faces.setdefault(person, []).append(face)
        expect_means(faces)


def test_a_gpu_is_taken_reported_and_where_required_insisted_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert select_search_device("cpu", "auto") == "cpu"
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 0)
    with caplog.at_level(logging.WARNING):
        assert select_search_device("gpu", "auto") == "cpu"
    assert "no GPU" in caplog.text
    with pytest.raises(DeviceUnavailable, match="extra gpu"):
        select_search_device("gpu", "gpu")
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1)
    monkeypatch.setattr(faiss, "index_cpu_to_gpu", None, raising=False)
    assert select_search_device("gpu", "gpu") == "gpu"


def test_on_a_gpu_the_rows_are_copied_there_and_ranked_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """With FAISS's own flat index in the GPU's place: what is copied there and how it is used."""

    class Options:
        useFloat16 = False  # noqa: N815 (FAISS's name)

    copied = []

    def copy(_resources: object, gpu: int, index: faiss.Index, options: Options) -> faiss.Index:
        copied.append((gpu, index.ntotal, options.useFloat16))
        return index

    monkeypatch.setattr(faiss, "StandardGpuResources", object, raising=False)
    monkeypatch.setattr(faiss, "GpuClonerOptions", Options, raising=False)
    monkeypatch.setattr(faiss, "index_cpu_to_gpu", copy, raising=False)
    embeddings, probes = people_like(50, 2, DIMENSION), random_units(4, DIMENSION, 8)
    index = FaceIndex(DIMENSION, "gpu")
    index.follow(1, lambda _: [to_changes(1, embeddings)])
    index.rebuild()
    assert (index.kind, copied) == ("exact on gpu", [(0, 0, True)])
    assert [[hit.person for hit in hits] for hits in index.search(probes, 3)] == best_people(
        embeddings, probes, 3
    )
