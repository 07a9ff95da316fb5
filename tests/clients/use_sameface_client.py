"""Uses our own client, as somebody would: python ... URL PHOTO PHOTO."""

import asyncio
import json
import sys

import sameface_client
from sameface_client import BatchFailed, BatchIdentified, EnrollEntry


def name_of(answer: BatchIdentified | BatchFailed) -> str:
    """The name of whom a probe shows, or what is wrong with it."""
    if isinstance(answer, BatchFailed):
        return answer.error.code
    match = answer.results[0].match
    return (match.name if match else None) or "nobody"


async def compare(url: str, *photos: str) -> list[bool]:
    """Whether two photos show the same person, asked in a task."""
    async with sameface_client.connect_async(url) as faces:
        task = asyncio.create_task(faces.verify(photos[0], photos[1]))
        return [(await task).same_person]


def main(url: str, *photos: str) -> None:
    """Verify, enrol, identify and forget, and print what came out."""
    with sameface_client.connect(url) as faces:
        decision = faces.verify(photos[0], photos[1])
        staff = faces.collection("staff")
        enrolled = staff.enroll("ada", photos, name="Ada", metadata={"room": 7})
        found = staff.identify(faces.embed(photos[1]).faces[0].embedding, limit=1)
        batch = list(staff.enroll_many(EnrollEntry(str(n), photo) for n, photo in enumerate(photos, 1)))
        names = {name_of(answer) for answer in staff.identify_many((photo, photo) for photo in photos)}
        try:
            staff.person("nobody")
        except sameface_client.PersonNotFound as error:
            problem = [type(error).__name__, error.status, error.code]
        staff.delete()
    match = found.results[0].match
    answers = {
        "same_person": decision.same_person,
        "enrolled": [enrolled.person_id, len(enrolled.faces)],
        "match": match.name if match and names else None,
        "batch": [answer.id for answer in batch],
        "problem": problem,
        "tasks": asyncio.run(compare(url, *photos)),
        "others": sorted({"numpy", "PIL", "sameface"} & set(sys.modules)),
    }
    print(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
