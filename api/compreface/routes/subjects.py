"""Subjects: people by their names."""

from typing import Annotated, Any

from fastapi import Depends

from sameface.api.body.read_body import body_of
from sameface.api.compreface.access import SEARCH, WRITE, Collection
from sameface.api.compreface.bodies import SubjectBody
from sameface.api.compreface.options import check_subject
from sameface.api.compreface.router import PREFIX, SlashRouter
from sameface.api.dependencies import Gallery
from sameface.model.gallery import subjects

router = SlashRouter(prefix=f"{PREFIX}/recognition/subjects")

Named = Annotated[SubjectBody, Depends(body_of(SubjectBody))]


@router.post("", status_code=201, dependencies=[WRITE])
async def add_subject(body: Named, collection: Collection, gallery: Gallery) -> dict[str, Any]:
    """Add a subject without a face."""
    subject = check_subject(body.subject)
    await gallery.writers.run(subjects.add_subject, gallery, collection, subject)
    return {"subject": subject}


@router.get("", dependencies=[SEARCH])
async def list_subjects(collection: Collection, gallery: Gallery) -> dict[str, Any]:
    """List all subjects."""
    return {"subjects": await gallery.readers.run(subjects.list_subjects, gallery, collection)}


@router.put("/{subject}", dependencies=[WRITE])
async def rename_subject(
    subject: str, body: Named, collection: Collection, gallery: Gallery
) -> dict[str, Any]:
    """Rename a subject, or merge it with the one that has the new name."""
    name = check_subject(body.subject) if body.subject.strip() else ""
    renamed = await gallery.writers.run(subjects.rename_subject, gallery, collection, subject, name)
    return {"updated": renamed}


@router.delete("/{subject}", dependencies=[WRITE])
async def delete_subject(subject: str, collection: Collection, gallery: Gallery) -> dict[str, Any]:
    """Delete a subject with its faces."""
    await gallery.writers.run(subjects.forget_subject, gallery, collection, subject)
    return {"subject": subject}


@router.delete("", dependencies=[WRITE])
async def delete_all_subjects(collection: Collection, gallery: Gallery) -> dict[str, Any]:
    """Delete all subjects with their faces."""
    people, _ = await gallery.writers.run(gallery.forget_everybody, collection)
    return {"deleted": people}
