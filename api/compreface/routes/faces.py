"""The faces of subjects: add, list, verify, delete."""

from typing import Annotated, Any

from fastapi import Depends, Request

from sameface.api.body.read_body import body_of
from sameface.api.compreface.access import SEARCH, WRITE, Collection
from sameface.api.compreface.answers import describe_matches, describe_result, find_faces, list_embeddings
from sameface.api.compreface.bodies import ImageIds, OnePhoto
from sameface.api.compreface.errors import ParameterMissing
from sameface.api.compreface.options import Chosen, check_subject, read_options
from sameface.api.compreface.router import PREFIX, SlashRouter
from sameface.api.dependencies import ROOM, Gallery, Pipeline
from sameface.model.enroll import EnrollRequest, enroll
from sameface.model.gallery import subjects
from sameface.model.store.records import FaceOwner
from sameface.model.verify import CompareRequest, compare

router = SlashRouter(prefix=f"{PREFIX}/recognition/faces")

Photo = Annotated[OnePhoto, Depends(body_of(OnePhoto))]


@router.post("", status_code=201, dependencies=[WRITE, ROOM])
async def add_face(
    request: Request, body: Photo, collection: Collection, pipeline: Pipeline, gallery: Gallery
) -> dict[str, Any]:
    """Add a face to a subject, which is added if it is new; the photo must show one face."""
    options = read_options(request, body.fields)
    subject = options.named_subject
    person_id = await gallery.readers.run(subjects.choose_person_id, gallery, collection, subject)
    enrolled = await enroll(
        pipeline,
        gallery,
        EnrollRequest(
            collection=collection,
            person_id=person_id,
            name=subject,
            photos=[body.file],
            may_exist=True,
            faces="only",
            min_score=options.det_prob_threshold,
        ),
    )
    return {"image_id": enrolled.faces[0].face_id, "subject": subject}


@router.get("", dependencies=[SEARCH])
async def list_faces(options: Chosen, collection: Collection, gallery: Gallery) -> dict[str, Any]:
    """List the faces of all subjects, or of one."""
    found, total = await gallery.readers.run(
        subjects.list_faces, gallery, collection, options.size, options.page * options.size, options.subject
    )
    return {
        "faces": [describe_owner(owner) for owner in found],
        "page_number": options.page,
        "page_size": options.size,
        "total_pages": -(-total // options.size),
        "total_elements": total,
    }


@router.delete("", dependencies=[WRITE])
async def delete_faces(
    request: Request, options: Chosen, collection: Collection, gallery: Gallery
) -> dict[str, Any]:
    """Delete a subject with its faces; without a subject, all of them."""
    if options.subject is None:
        if request.url.path.endswith("/"):  # more likely the address of a face whose id is missing
            raise ParameterMissing("Missing parameter: subject")
        return {"deleted": (await gallery.writers.run(gallery.forget_everybody, collection))[1]}
    subject = check_subject(options.subject)
    return {"deleted": await gallery.writers.run(subjects.forget_faces_of, gallery, collection, subject)}


@router.delete("/{image_id}", dependencies=[WRITE])
async def delete_face(image_id: str, collection: Collection, gallery: Gallery) -> dict[str, Any]:
    """Delete one face."""
    return describe_owner(await gallery.writers.run(subjects.forget_face, gallery, collection, image_id))


@router.post("/delete", dependencies=[WRITE])
async def delete_several_faces(
    body: Annotated[ImageIds, Depends(body_of(ImageIds))], collection: Collection, gallery: Gallery
) -> list[dict[str, Any]]:
    """Delete faces; unknown ids are left out of the answer."""
    gone = await gallery.writers.run(subjects.forget_faces, gallery, collection, body.root)
    return [describe_owner(owner) for owner in gone]


@router.post("/{image_id}/verify", dependencies=[SEARCH, ROOM])
async def verify_face(
    request: Request,
    image_id: str,
    body: Photo,
    collection: Collection,
    pipeline: Pipeline,
    gallery: Gallery,
) -> dict[str, Any]:
    """Compare the faces of a photo with one face of a subject."""
    options = read_options(request, body.fields)
    owner, known = await gallery.readers.run(subjects.find_face, gallery, collection, image_id)
    found = await find_faces(pipeline, body.file, options)
    probes = list_embeddings(pipeline, found)
    asked = CompareRequest(known=known, probes=probes, collection=collection, owner=owner)
    matches = describe_matches(found, options, compare(pipeline, gallery, asked))
    return describe_result([match | {"subject": owner.label} for match in matches], options, pipeline)


def describe_owner(owner: FaceOwner) -> dict[str, Any]:
    """A face by its id and its subject."""
    return {"image_id": owner.face_id, "subject": owner.label}
