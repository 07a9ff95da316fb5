"""Files that are full, hostile, read-only, damaged or gone."""

import ctypes
import gzip
import json
import resource
import shutil
import sqlite3
import stat
import time
from contextlib import closing
from pathlib import Path

import httpx

from tests.attack.exchange import connect, read_answer, write_request
from tests.attack.findings.connections import send_chunk
from tests.attack.findings.outcome import Outcome
from tests.attack.findings.values import STAFF, embed, enrol, one_person
from tests.attack.ground import Ground, find_faults
from tests.model.upkeep.archives import read_lines, write_lines

CAPABILITIES_TO_DROP = (1, 2)  # to write and to read whatever the modes of files say
DROP = 24
FILE_BYTES = 3_000_000
BOMB_BYTES = 4_000_000_000


def fill_the_temporary_folder(ground: Ground) -> Outcome:
    """A batch whose answers nobody reads yet, where files may have three megabytes."""
    with ground.serve(prepare=limit_files) as server, server.client() as client:
        client.put(STAFF)
        embedding = embed(client, ground.photo)
        for number in range(60):
            client.post(f"{STAFF}/people", json={"person_id": f"p{number}", "embeddings": [embedding]})
        line = json.dumps({"id": "1", "embedding": embedding}).encode() + b"\n"
        chunked = {"Content-Type": "application/x-ndjson", "Transfer-Encoding": "chunked"}
        headers = server.authorization("read") | chunked
        with connect(server.address, 60, receive_bytes=4096) as opened:
            opened.sendall(write_request("POST", f"{STAFF}/identify/batch?limit=60", headers))
            for _ in range(60):
                opened.sendall(send_chunk(line * 50))
            opened.sendall(b"0\r\n\r\n")
            time.sleep(3)
            answer = read_answer(opened)
    *before, last = answer.body.splitlines()
    told = json.loads(last).get("error", {}).get("code")
    return Outcome(
        told == "body_too_large" and all(b'"results"' in each for each in before),
        f"{len(before):,} answers, then a last line with the error `{told}`",
    )


def limit_files() -> None:
    """Let a process write no large file."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))


def import_archives(ground: Ground) -> Outcome:
    """A gzip bomb, and archives with values that no request could have."""
    with one_person(ground):
        pass
    archive, other = ground.folder / "staff.gz", ground.folder / "bad.gz"
    exported = ground.sameface("gallery", "export", "staff", archive)
    write_bomb(other)
    bomb = ground.sameface("gallery", "import", other, "--collection", "bomb")
    refused = [bomb]
    header, person, last = read_lines(archive)
    for change in (
        {"name": "\ud800"},
        {"metadata": {"a": "\udfff"}},
        {"created_at": 1e18},
        {"person_id": ".."},
        {"metadata": {"a": "x" * 20_000_000}},
    ):
        write_lines(other, [header, person | change, last])
        refused.append(ground.sameface("gallery", "import", other, "--collection", "copy"))
    with ground.serve() as server, server.client() as client:
        names = [item["name"] for item in client.get("/v1/collections").json()["items"]]
    said = "refused in a sentence" if all(each.refused for each in refused) else "not all refused"
    return Outcome(
        exported.code == 0
        and all(each.refused for each in refused)
        and names == ["staff"]
        and bomb.peak_megabytes < 1_000,
        f"a bomb of {BOMB_BYTES / 1e9:.0f} GB and five bad archives: {said},"
        f" {bomb.peak_megabytes:.0f} MB at most",
    )


def write_bomb(path: Path) -> None:
    """A gzip of one endless line."""
    piece = bytes(10_000_000)
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(BOMB_BYTES // len(piece)):
            file.write(piece)


def look_for_the_deleted(ground: Ground) -> Outcome:
    """The files of the data folder after a delete, and their modes."""
    with one_person(ground) as (_, client):
        enrol(client, ground.photo, person_id="bob", name="Bob Dobbs")
        client.post(f"{STAFF}/identify", files={"image": ground.photo})
        before = holding(ground.data, b"Bob Dobbs")
        client.delete(f"{STAFF}/people/bob")
        started = time.monotonic()
        while (left := holding(ground.data, b"Bob Dobbs")) and time.monotonic() - started < 30:
            time.sleep(0.25)
        waited = time.monotonic() - started
        open_files = [path.name for path in kept(ground.data) if stat.S_IMODE(path.stat().st_mode) & 0o077]
    return Outcome(
        bool(before) and not left and waited < 10 and not open_files,
        f"the name leaves {' and '.join(before)} within {waited:.0f} s; "
        + (f"{open_files} can be read by others" if open_files else "others may read no file of the gallery"),
    )


def kept(data: Path) -> list[Path]:
    """The files of a gallery, without the graphs beside it."""
    files = [path for path in data.rglob("*") if path.is_file() and "cache" not in path.parts]
    return [path for path in files if path.suffix != ".opening"]


def holding(data: Path, content: bytes) -> list[str]:
    """The names of the files that hold these bytes."""
    return [path.name for path in kept(data) if content in path.read_bytes()]


def drop_capabilities() -> None:
    """Let the modes of files count for root too."""
    kernel = ctypes.CDLL(None)
    for capability in CAPABILITIES_TO_DROP:
        kernel.prctl(DROP, capability, 0, 0, 0)


def spoil_the_folder(ground: Ground) -> Outcome:
    """A data folder that is read-only, a database that is damaged, and one that is deleted in use."""
    with one_person(ground):
        pass
    said = [read_only(ground), deleted(ground), damaged(ground)]
    return Outcome(all(each.held for each in said), "; ".join(each.now for each in said))


def read_only(ground: Ground) -> Outcome:
    """The commands that only read, in a folder where nothing may be written."""
    paths = [ground.data, *ground.data.rglob("*")]
    modes = {path: path.stat().st_mode for path in paths if not path.is_symlink()}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    commands = (
        ("people", "--collection", "staff"),
        ("gallery", "export", "staff", ground.folder / "copy.gz"),
        ("gallery", "check"),
    )
    try:
        ran = [ground.sameface(*words, prepare=drop_capabilities) for words in commands]
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
    codes = [each.code for each in ran]
    return Outcome(codes == [0, 0, 0], f"read-only: people, export and check end with {codes}")


def deleted(ground: Ground) -> Outcome:
    """Writes to a database whose file is gone."""
    for leftover in ground.folder.glob("server-*.log"):
        leftover.unlink()
    backup = ground.folder / "backup"
    shutil.copytree(ground.data, backup, symlinks=True)
    server = ground.start()
    with server.client() as client:
        for path in ground.data.glob("gallery.db*"):
            path.unlink()
        answer = client.post(f"{STAFF}/people", files={"images": ground.photo}, data={"person_id": "eve"})
    server.stop()
    server.process.stdout.close()
    shutil.rmtree(ground.data)
    backup.rename(ground.data)
    told = answer.json().get("code")
    return Outcome(
        answer.status_code in (503, 507), f"deleted in use: a write is {answer.status_code} `{told}`"
    )


def damaged(ground: Ground) -> Outcome:
    """A server and a command on a database with a page of noise in the middle."""
    secret = "patient-4711"
    database = ground.data / "gallery.db"
    with closing(sqlite3.connect(database)) as opened:
        opened.execute("UPDATE people SET metadata = ?", (json.dumps({"a": secret}),))
        opened.commit()
        opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(database.read_bytes())
    for page in range(2, len(content) // 4096):
        content[page * 4096 : page * 4096 + 64] = b"\xde\xad" * 32
    database.write_bytes(content)
    listed = ground.sameface("people", "--collection", "staff")
    log, answer = ask_damaged(ground)
    tells = secret in log + listed.said + listed.complained
    return Outcome(
        listed.code in (1, 2) and "Traceback" not in listed.complained + log and not tells,
        f"damaged: the command ends with {listed.code} and a sentence, the server {answer}, and"
        f" {'the metadata is' if tells else 'no metadata is'} quoted",
    )


def ask_damaged(ground: Ground) -> tuple[str, str]:
    """The log of a server on the damaged database, and what it does."""
    try:
        server = ground.start()
    except RuntimeError as refusal:
        return str(refusal), "refuses to start"
    with server.client() as client:
        try:
            answer: httpx.Response | None = client.get(f"{STAFF}/people")
        except httpx.TransportError:
            answer = None
    server.stop()
    server.process.stdout.close()
    log = server.log
    faults = find_faults(log)
    said = f"answers {answer.status_code} {answer.json().get('code', '')}" if answer is not None else "dies"
    return log, said + (" with a traceback" if any("Traceback" in fault for fault in faults) else "")
