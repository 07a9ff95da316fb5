"""The index: whatever finds the candidates, the answers are those of comparing everything."""

import logging

import faiss
import numpy as np
import pytest

from sameface.model.errors import DeviceUnavailable
from sameface.model.faces import Floats
from sameface.model.gallery.index.faiss import candidates as candidates_module
from sameface.model.gallery.index.faiss import face_index as index_module
from sameface.model.gallery.index.faiss.candidates import select_search_device
from sameface.model.gallery.index.faiss.face_index import FaceIndex
from sameface.model.store.records import FaceBlock, FaceChanges
from tests.model.gallery.index.faiss.codes import blank_of, code_of
from tests.model.people import people_like, random_units

DIMENSION = 16


def to_changes(
    sequence: int, embeddings: Floats, first_face: int = 1, gone: tuple[int, ...] = ()
) -> FaceChanges:
    """Person n has the faces n * faces + first_face ..."""
    people, faces, _ = embeddings.shape
    keys = np.arange(people * faces) + first_face
    rows = FaceBlock(keys, np.repeat(np.arange(people), faces), embeddings.reshape(-1, embeddings.shape[2]))
    return FaceChanges(sequence, rows, np.array(gone, np.int64))


def filled(embeddings: Floats, gone: tuple[int, ...] = ()) -> FaceIndex:
    index = FaceIndex(embeddings.shape[2])
    index.follow(1, lambda _: [to_changes(1, embeddings, gone=gone)])
    return index


def best_people(embeddings: Floats, probes: Floats, limit: int) -> list[list[int]]:
    best = np.einsum("pfd,nd->npf", embeddings, probes).max(axis=2)
    return np.argsort(-best, axis=1)[:, :limit].tolist()


@pytest.fixture(autouse=True)
def _codes_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every gallery of more than 200 faces is searched by codes."""
    monkeypatch.setattr(candidates_module, "EXACT_ROWS", 200)
    monkeypatch.setattr(index_module, "DEAD_ROWS", 10)


@pytest.mark.parametrize("dimension", [16, 15])
def test_codes_find_the_same_ten_people_with_the_same_similarities(dimension: int) -> None:
    embeddings = people_like(1000, 3, dimension)
    mated, unmated = people_like(1000, 1, dimension, seed=0)[:50, 0], random_units(50, dimension, 3)
    index, probes = filled(embeddings), np.concatenate([mated, unmated])
    exact = index.search(probes, 10)
    assert index.needs_rebuilding
    index.rebuild()
    assert index.kind == "codes"
    assert not index.needs_rebuilding
    found = index.search(probes, 10)
    assert np.mean(found.people == exact.people) > 0.98
    rows = embeddings.reshape(-1, dimension)[found.faces - 1]  # (probes, 10, dimension)
    compared = np.einsum("pfd,pd->pf", rows, probes)
    assert found.similarities == pytest.approx(compared, abs=1e-6)  # exact, not of codes


def test_a_search_for_more_people_than_are_worth_proposing_compares_everything() -> None:
    embeddings = people_like(300, 1, DIMENSION)
    index, probes = filled(embeddings), random_units(3, DIMENSION, 5)
    index.rebuild()
    found = index.search(probes, 300)
    assert found.people.tolist() == best_people(embeddings, probes, 300)


def test_an_exact_search_asks_no_codes() -> None:
    embeddings, probes = people_like(1000, 3, DIMENSION), random_units(20, DIMENSION, 3)
    index = filled(embeddings)
    index.rebuild()
    assert index.kind == "codes"
    index.faiss_index = None  # a search by codes would fail
    assert index.search(probes, 10, exact=True).people.tolist() == best_people(embeddings, probes, 10)


def test_one_person_with_many_faces_does_not_hide_the_others() -> None:
    many = people_like(1, 900, DIMENSION)
    index = filled(many)
    index.rebuild()
    other = random_units(1, DIMENSION, 77)
    index.follow(
        2, lambda _: [FaceChanges(2, FaceBlock(np.array([5000]), np.array([1]), other), np.array([], int))]
    )
    assert index.search(many[0, :1], 2).people.tolist() == [[0, 1]]


def test_changes_after_the_codes_were_made_are_found() -> None:
    embeddings = people_like(300, 1, DIMENSION)
    index = filled(embeddings[:250])
    index.rebuild()
    late = to_changes(2, embeddings[250:], first_face=1000, gone=(1, 2, 3))
    index.follow(2, lambda _: [late])
    assert index.size == 297
    assert not index.columns.embeddings[~index.columns.alive].any()  # zeroed at once
    assert index.search(embeddings[260], 1).faces.tolist() == [[1010]]
    assert 1 not in index.search(embeddings[0], 50).faces


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
    assert (index.sequence, index.size, index.kind) == (2, 299, "codes")
    assert index.search(embeddings[270], 1).faces.tolist() == [[1020]]
    assert 7 not in index.search(embeddings[6], 50).faces
    assert code_of(index.faiss_index, 6) == blank_of(index.faiss_index)
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
    assert found.faces[:, 0].tolist() == list(range(12, 101))


def test_means_follow_every_change() -> None:
    embeddings = people_like(40, 4, DIMENSION)
    index = filled(embeddings)

    def expect_means(faces: dict[int, list[int]]) -> None:
        flat = embeddings.reshape(-1, DIMENSION)
        probe = random_units(1, DIMENSION, 3)
        sums = {person: flat[[face - 1 for face in held]].sum(0) for person, held in faces.items()}
        exact = {person: float(probe[0] @ total / np.linalg.norm(total)) for person, total in sums.items()}
        hits = index.search_means(probe, 100)
        found = hits.people[hits.people >= 0].tolist()
        assert sorted(found) == sorted(exact)
        for person, face, similarity in zip(found, hits.faces[0], hits.similarities[0], strict=False):
            assert similarity == pytest.approx(exact[person], abs=1e-5)
            assert face % 1000 in faces[person]

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
    assert index.search(probes, 3).people.tolist() == best_people(embeddings, probes, 3)
