"""Uses the client that openapi-python-client wrote, as somebody would: python ... URL PHOTO PHOTO."""

import io
import json
import sys
from pathlib import Path

from written import Client
from written.api.batch import identify_batch
from written.api.collections import create_collection, delete_collection
from written.api.identify import identify
from written.api.people import enroll_person
from written.api.verify import verify
from written.models import IdentifyForm, PersonForm, Problem, VerifyForm
from written.types import File

address, *paths = sys.argv[1:]
client = Client(base_url=address)


def photo(path: str) -> File:
    """A photo as a part of a form."""
    return File(payload=Path(path).open("rb"), file_name=Path(path).name)


decision = verify.sync(client=client, body=VerifyForm(probe=photo(paths[0]), reference=photo(paths[1])))
create_collection.sync(client=client, collection="written")
person = PersonForm(images=[photo(path) for path in paths], person_id="ada", name="Ada", metadata='{"a": 1}')
enrolled = enroll_person.sync(client=client, collection="written", body=person)
found = identify.sync(client=client, collection="written", body=IdentifyForm(image=photo(paths[1])))
refused = enroll_person.sync(client=client, collection="nowhere", body=PersonForm(images=[photo(paths[0])]))
lines = File(payload=io.BytesIO(b'{"id": "1", "embedding": []}\n'))
answers = identify_batch.sync(client=client, collection="written", body=lines)
deleted = delete_collection.sync_detailed(client=client, collection="written")
assert isinstance(refused, Problem)
print(
    json.dumps(
        {
            "same_person": decision.same_person,
            "enrolled": [enrolled.person_id, len(enrolled.faces)],
            "match": found.results[0].match.name,
            "problem": [refused.status, refused.code],
            "batch": [json.loads(answer)["id"] for answer in answers.payload],
            "deleted": deleted.status_code,
        }
    )
)
