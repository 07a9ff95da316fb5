"""Batches of probes in every format that identify/batch takes, made beforehand."""

import http.client
import io
import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.shared.server import Server
from sameface.model.faces import Floats

LINES, ARRAY = "application/x-ndjson", "application/x-npy"
ARROW = "application/vnd.apache.arrow.stream"
ROWS_EACH = 1_024  # of a record batch


@dataclass(frozen=True, slots=True)
class Batch:
    """The probes of one request, the format they are in, and the format of the answers."""

    name: str
    content: bytes
    media_type: str
    accept: str


def write_batches(probes: Floats) -> list[Batch]:
    """The same probes as lines of JSON answered in lines, and as an array and in Arrow answered in Arrow."""
    return [
        Batch("lines of JSON", write_lines(probes), LINES, LINES),
        Batch("an array (npy), Arrow back", write_array(probes), ARRAY, ARROW),
        Batch("Arrow, Arrow back", write_arrow(probes), ARROW, ARROW),
    ]


def write_lines(probes: Floats) -> bytes:
    """A line of JSON per probe; its id is its number."""
    lines = ({"id": str(number), "embedding": probe.tolist()} for number, probe in enumerate(probes))
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def write_array(probes: Floats) -> bytes:
    """What numpy.save writes."""
    content = io.BytesIO()
    np.save(content, probes)
    return content.getvalue()


def write_arrow(probes: Floats) -> bytes:
    """An Arrow IPC stream with the columns id and embedding."""
    content = pa.BufferOutputStream()
    embeddings = pa.FixedSizeListArray.from_arrays(pa.array(probes.ravel()), probes.shape[1])
    table = pa.table({"id": [str(number) for number in range(len(probes))], "embedding": embeddings})
    with pa.ipc.new_stream(content, table.schema) as stream:
        stream.write_table(table, max_chunksize=ROWS_EACH)
    return bytes(content.getvalue())


def ask_batch(server: Server, batch: Batch, query: str = "") -> bytes:
    """Identify a batch in the collection `people`; returns the whole answer, not parsed."""
    connection = http.client.HTTPConnection(server.host, server.port)
    headers = {"Content-Type": batch.media_type, "Accept": batch.accept}
    connection.request("POST", f"/v1/collections/people/identify/batch?{query}", batch.content, headers)
    response = connection.getresponse()
    answer = response.read()
    assert response.status == 200, answer[:500]
    return answer
