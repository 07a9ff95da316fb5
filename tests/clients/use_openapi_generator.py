"""Uses the client that openapi-generator wrote, as somebody would: python ... URL PHOTO PHOTO."""

import base64
import json
import sys
from pathlib import Path

import written_too as written

address, *paths = sys.argv[1:]
client = written.ApiClient(written.Configuration(host=address))
probe, reference = (
    written.Base64Photo(base64=base64.b64encode(Path(path).read_bytes()).decode()) for path in paths
)
people, collections = written.PeopleApi(client), written.CollectionsApi(client)

decision = written.VerifyApi(client).verify(written.VerifyRequest(probe=probe, reference=reference))
collections.create_collection("written")
person = written.PersonRequest(images=[probe, reference], person_id="ada", name="Ada", metadata={"a": 1})
enrolled = people.enroll_person("written", person)
found = written.IdentifyApi(client).identify("written", written.IdentifyRequest(image=reference))
lines = json.dumps({"id": "1", "embedding": []}) + "\n"
answers = written.BatchApi(client).identify_batch("written", lines.encode())
listed = people.list_people("written")
try:
    people.get_person("written", "nobody")
except written.ApiException as error:
    refused = error.data
people.forget_person("written", "ada")
collections.delete_collection("written")
print(
    json.dumps(
        {
            "same_person": decision.same_person,
            "enrolled": [enrolled.person_id, len(enrolled.faces)],
            "match": found.results[0].match.name,
            "batch": [json.loads(answer)["id"] for answer in answers.splitlines()],
            "listed": [person.metadata for person in listed.items],
            "problem": [type(refused).__name__, refused.status, refused.code],
        }
    )
)
