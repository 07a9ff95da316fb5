"""Work by purpose: whoever waits for the database's one writer keeps nobody else waiting."""

import threading

import httpx

from tests.api.collections import enrol, identify, make_collection
from tests.pictures import photo_of


def test_reads_searches_and_metrics_answer_while_all_writers_wait(serve) -> None:
    with serve() as client:
        staff = make_collection(client)
        enrol(client, staff, photo_of(1), person_id="ada")
        waiting = [
            threading.Thread(target=lambda n=n: enrol(client, staff, photo_of(n), person_id=f"p{n}"))
            for n in range(2, 14)
        ]
        with client.app.state.gallery.store.writing(), httpx.Client(base_url=client.base_url) as other:
            for thread in waiting:
                thread.start()
            for _ in range(10):  # each of these would wait for the lock that this block holds
                assert other.get(f"{staff}/people").status_code == 200
                assert other.get("/metrics").status_code == 200
                assert other.get("/health/ready").status_code == 200
                assert identify(other, staff, photo_of(1))["results"][0]["match"]["person_id"] == "ada"
        for thread in waiting:
            thread.join(30)
        assert client.get(staff).json()["people"] == 13
