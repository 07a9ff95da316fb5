"""Photos that cost far more than their bytes."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from tests.attack.crafted_photos import draw_line, flat_webp, scan_bomb, slowest_jpeg
from tests.attack.findings.outcome import Outcome
from tests.attack.ground import Ground, Server

GRACE_SECONDS = 10
BOMB_SCANS = 46_000  # in nearly ten megabytes


def detect(server: Server, photo: bytes) -> int:
    """The status that a photo gets."""
    with server.client("read") as client:
        return client.post("/v1/detect", files={"image": photo}).status_code


def send_many_scans(ground: Ground) -> Outcome:
    """Scans beyond the limit, then as many as are allowed while an ordinary photo comes, then an end."""
    bomb, slow = scan_bomb(BOMB_SCANS), slowest_jpeg()
    with ground.serve(request_seconds=GRACE_SECONDS) as server, ThreadPoolExecutor(8) as senders:
        refused = list(senders.map(lambda _: detect(server, bomb), range(2)))
        two_slow = [senders.submit(detect, server, slow) for _ in range(2)]
        time.sleep(0.3)
        started = time.monotonic()
        ordinary, waited = detect(server, ground.photo), time.monotonic() - started
        answered = [sent.result() for sent in two_slow]
        threads = [threading.Thread(target=send_to_the_end, args=(server, slow)) for _ in range(8)]
        for thread in threads:
            thread.start()
        time.sleep(1)
        stopped = server.stop()
        for thread in threads:
            thread.join()
    held = refused == [413, 413] and answered == [200, 200] and ordinary == 200
    return Outcome(
        held and stopped <= GRACE_SECONDS + 1,
        f"{len(bomb) / 1e6:.1f} MB with {BOMB_SCANS:,} scans: 413; while two with 100 scans are decoded, an"
        f" ordinary photo has its {ordinary} in {waited:.1f} s; told to stop with eight in work, the server"
        f" ends in {stopped:.1f} s of its {GRACE_SECONDS}",
    )


def send_to_the_end(server: Server, photo: bytes) -> None:
    """Send a photo to a server that may stop meanwhile."""
    try:
        detect(server, photo)
    except Exception:  # whatever the client makes of a server that goes away
        return


def send_pixels(ground: Ground) -> Outcome:
    """Six pictures of many pixels and few bytes at once, and what is left of them in memory."""
    bombs = [flat_webp(), flat_webp(), flat_webp(), flat_webp(), draw_line(1, 50_000_000), flat_webp()]
    with ground.serve() as server, ThreadPoolExecutor(6) as senders:
        detect(server, ground.photo)
        before = server.megabytes
        statuses = list(senders.map(lambda bomb: detect(server, bomb), bombs))
        after = server.megabytes
    grown = ground.measures.peak_megabytes - before
    return Outcome(
        statuses == [200, 200, 200, 200, 413, 200] and grown < 1_000 and after < before + 200,
        f"the line is 413, the others wait for each other: {grown:.0f} MB more at most,"
        f" {max(0, after - before):.0f} MB afterwards",
    )
