"""Recognisers, a collection of one of them, and its move to another."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from sameface.model.bundles.bundle import load_bundle, save_bundle
from sameface.model.data_folder import DataFolder
from sameface.model.photo.embed import Embedder
from sameface.model.photo.image import encode_png
from sameface.model.runtime.session_pool import open_sessions
from sameface.model.store.records import Collection, NewFace, NewPerson
from sameface.model.store.store import Store
from sameface.model.upkeep import reembed as reembed_module
from sameface.model.upkeep.reembed import move_collection
from tests.model.upkeep.reembed.moved import PEOPLE, create, draw_crop
from tests.networks import build_recogniser


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    """A data folder with two recognisers, and a third that wants the face elsewhere."""
    folder = DataFolder(tmp_path_factory.mktemp("data"))
    for name, seed in (("old", 1), ("new", 7)):
        (folder.models / name).mkdir(parents=True)
        bundle = build_recogniser(folder.models / name, name=name, seed=seed)
    contract = bundle.contract
    moved = tuple((x + 9, y - 5) for x, y in contract.template)
    save_bundle(
        dataclasses.replace(contract, name="shifted", template=moved), bundle.path, folder.models / "shifted"
    )
    return folder


@pytest.fixture(scope="module")
def embedders(folder: DataFolder) -> dict[str, Embedder]:
    bundles = [load_bundle(folder.models / name) for name in ("old", "new", "shifted")]
    return {
        bundle.contract.name: Embedder(bundle, open_sessions(bundle, "cpu", folder.cache))
        for bundle in bundles
    }


@pytest.fixture
def somebody(embedders: dict[str, Embedder]) -> Callable[..., NewPerson]:
    """A person to enrol with faces that keep their crops."""

    def make(person_id: str, *seeds: int, **others: Any) -> NewPerson:
        embeddings = embedders["old"].embed([draw_crop(seed) for seed in seeds])
        faces = [
            NewFace(
                f"face-{seed}", embedding.values, seed / 1000, f"{seed:064x}", encode_png(draw_crop(seed))
            )
            for seed, embedding in zip(seeds, embeddings, strict=True)
        ]
        return NewPerson(person_id, faces, **others)

    return make


@pytest.fixture
def staff(store: Store, embedders: dict[str, Embedder], somebody: Callable[..., NewPerson]) -> Collection:
    """People with two faces each, and one who has lost the only one."""
    staff = create(store, embedders["old"].bundle)
    people = [somebody(f"p{n}", 2 * n, 2 * n + 1, name=f"N{n}", metadata={"n": n}) for n in range(PEOPLE)]
    store.people.enroll(staff, [*people, somebody("bare", 999)])
    store.people.delete_face(staff, "bare", "face-999")
    return store.collections.get("staff")


@pytest.fixture
def move(store: Store, folder: DataFolder, embedders: dict[str, Embedder]) -> Callable[..., Collection]:
    def move(name: str = "new", **others: Any) -> Collection:
        return move_collection(store, "staff", embedders[name].bundle, folder, "cpu", **others)

    return move


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reembed_module, "FACES_AT_ONCE", 5)
