"""A client of a sameface server.

    import sameface_client

    with sameface_client.connect("http://127.0.0.1:8000") as faces:
        print(faces.verify("one.jpg", "another.jpg").same_person)

Methods, options and answers are those of `sameface.open()`: code moves to a server by one line.
"""

from sameface_client import answers, errors
from sameface_client.answers import *  # noqa: F403
from sameface_client.asynchronous import AsyncCollection, AsyncFaces, AsyncKeys, connect_async
from sameface_client.batches import EnrollEntry
from sameface_client.blocking import Collection, Faces, Keys, connect
from sameface_client.errors import *  # noqa: F403

__all__ = [
    "AsyncCollection",
    "AsyncFaces",
    "AsyncKeys",
    "Collection",
    "EnrollEntry",
    "Faces",
    "Keys",
    "connect",
    "connect_async",
]
__all__ += answers.__all__
__all__ += errors.__all__
