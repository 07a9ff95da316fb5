"""A Milvus server is killed while people are enrolled, forgotten and searched: part of `make torture`."""

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from benchmarks.rivals.milvus_server import MilvusServer
from sameface.model.bundles.bundle import Bundle, load_bundle
from sameface.model.data_folder import MilvusAddress
from sameface.model.errors import IndexUnavailable
from sameface.model.gallery.gallery import Gallery
from sameface.model.upkeep.check_gallery import check_gallery
from tests.milvus_server import wait_until_fed
from tests.model.people import newcomer, random_units
from tests.networks import DIMENSION
from tests.postgres_server import gallery_in

KILLS = min(int(os.environ.get("SAMEFACE_KILLS", "0")), 5)
WORKERS = 3

pytestmark = [
    pytest.mark.skipif(not KILLS, reason="`make torture` kills a Milvus server"),
    pytest.mark.timeout(900),
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MilvusServer]:
    try:
        server = MilvusServer(tmp_path / "milvus")
    except Exception as error:  # no wheel for this machine, its ports are taken: whatever it is, it is said
        pytest.skip(f"Milvus cannot be started here: {error!r}")
    yield server
    server.kill()


class Ledger:
    """Who was acknowledged as enrolled or forgotten, and what went wrong."""

    def __init__(self) -> None:
        self.there: dict[str, np.ndarray] = {}
        self.gone: dict[str, np.ndarray] = {}
        self.wrong: list[str] = []
        self.answered = self.refused = 0


def find(gallery: Gallery, probe: np.ndarray) -> list[str]:
    [found] = gallery.search(gallery.get_collection("staff"), probe[None], 5).by_probe()
    return [each.person_id for each in found if each.similarity > 0.99]


def work(galleries: list[Gallery], ledger: Ledger, worker: int, stop: threading.Event) -> None:
    """Enrol, forget and search through either gallery until told to stop; the ledger keeps the answers."""
    choose, number, mine = random.Random(worker), 0, []
    while not stop.is_set():
        writer, searcher = choose.choices(galleries, k=2)
        staff = writer.get_collection("staff")
        if mine and choose.random() < 0.4:
            name = mine.pop(choose.randrange(len(mine)))
            writer.forget_person(staff, name)
            ledger.gone[name] = probe = ledger.there.pop(name)
        else:
            number += 1
            name, probe = f"w{worker}-{number}", random_units(1, DIMENSION, 100_000 * worker + number)[0]
            writer.enroll(staff, [newcomer(name, probe[None])])
            ledger.there[name] = probe
            mine.append(name)
        try:
            found = find(searcher, probe)
        except IndexUnavailable:
            ledger.refused += 1
            continue
        ledger.answered += 1
        if found != ([name] if name in ledger.there else []):
            ledger.wrong.append(f"{name}: {found}")


def test_no_write_is_missed_and_nobody_deleted_is_found_while_milvus_is_killed(
    data: Path, tmp_path: Path, server: MilvusServer
) -> None:
    bundle: Bundle = load_bundle(data / "models" / "recogniser")
    address = MilvusAddress(server.uri)
    with (
        closing(Gallery(gallery_in(tmp_path), bundle, milvus=address)) as one,
        closing(Gallery(gallery_in(tmp_path), bundle, milvus=address)) as other,
    ):
        one.create_collection("staff")
        for gallery in (one, other):
            gallery.load()
        ledger, stop = Ledger(), threading.Event()
        threads = [
            threading.Thread(target=work, args=([one, other], ledger, worker, stop))
            for worker in range(1, WORKERS + 1)
        ]
        for thread in threads:
            thread.start()
        for _ in range(KILLS):
            time.sleep(15)  # some of it is then settled, and some in the tail
            server.kill()
            time.sleep(3)
            server.start()
        time.sleep(15)
        stop.set()
        for thread in threads:
            thread.join()
        assert ledger.wrong == []
        assert ledger.answered > 100
        assert ledger.refused > 0
        wait_until_fed(one, "staff", 120)
        for gallery in (one, other):
            for name, probe in ledger.there.items():
                assert find(gallery, probe) == [name]
            for probe in [*ledger.gone.values()][:200]:
                assert find(gallery, probe) == []
        assert check_gallery(gallery_in(tmp_path), milvus=address) == []
        print(f"{ledger.answered} answered, {ledger.refused} refused, {len(ledger.there)} enrolled")
