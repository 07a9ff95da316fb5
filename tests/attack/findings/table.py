"""All that an attacker once found, each with the attack that shows what happens now."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.attack.findings import browsers, connections, disk, load, photos, processes, values
from tests.attack.findings.outcome import Outcome
from tests.attack.ground import Ground


@dataclass(frozen=True, slots=True)
class Finding:
    """A weakness that was found, and the attack that shows whether it is mended."""

    number: int
    severity: str
    sent: str
    attack: Callable[[Ground], Outcome]


FINDINGS = (
    Finding(1, "high", "progressive JPEGs with thousands of scans", photos.send_many_scans),
    Finding(2, "high", "hundreds of megabytes of headers, before any key", connections.send_headers),
    Finding(3, "high", "a person called `..`, and deletes of it", values.call_a_person_like_a_folder),
    Finding(
        4, "high", "232 idle and half-sent connections at 256 file descriptors", connections.hold_connections
    ),
    Finding(5, "high", "six enrolments of 25,000 embeddings at once", load.send_thousands_of_embeddings),
    Finding(6, "medium", "half of a surrogate pair in metadata", values.break_text),
    Finding(7, "medium", "JSON nested 5,000 times", values.nest),
    Finding(8, "medium", "60 clients that never read their answers", connections.leave_answers_unread),
    Finding(9, "medium", "62 batches that send a byte now and then", connections.trickle_batches),
    Finding(10, "medium", "five WebP of 49 megapixels in 2 kB, a PNG of 1 x 50,000,000", photos.send_pixels),
    Finding(11, "medium", "200 MB of base64 as an embedding", values.expand_base64),
    Finding(12, "medium", "writers that wait for the database's lock", load.lock_the_database),
    Finding(13, "medium", "requests of a web page, where there are no keys", browsers.call_from_a_page),
    Finding(
        14, "medium", "a batch that is read late, where the disk is full", disk.fill_the_temporary_folder
    ),
    Finding(15, "medium", "archives: a gzip bomb, values that no request has", disk.import_archives),
    Finding(16, "medium", "a look into the files after a delete", disk.look_for_the_deleted),
    Finding(17, "low", "a look into the log after ids and a key in addresses", browsers.read_the_log),
    Finding(18, "low", "an error rate of 5e-324", values.ask_for_impossible_rates),
    Finding(19, "low", "a boundary of 257 characters and more", values.stretch_the_boundary),
    Finding(20, "low", "a look into the OpenAPI document", browsers.read_the_contract),
    Finding(21, "low", "a slash at the end, and another Host", values.add_a_slash),
    Finding(22, "low", "a POST that asks to become a websocket", connections.ask_for_upgrade),
    Finding(23, "low", "NaN and infinity in metadata", values.send_nan),
    Finding(24, "low", "a worker killed, three times", processes.kill_a_worker),
    Finding(25, "low", "a data folder read-only, damaged, deleted in use", disk.spoil_the_folder),
    Finding(
        26,
        "low",
        "a supervisor killed, a stop while loading, few file descriptors",
        processes.leave_things_behind,
    ),
    Finding(27, "low", "an enrolment repeated after a delete", values.retry_after_a_delete),
    Finding(28, "low", "a network with an endless loop", processes.bring_an_endless_network),
)
