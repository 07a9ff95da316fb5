"""The audit: what was changed and decided, and who confirmed it."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from sameface.api.access.caller import ADMIN, Caller, refuse_unnamed
from sameface.api.body.read_body import body_of
from sameface.api.dependencies import Gallery, Id
from sameface.api.openapi import examples
from sameface.api.openapi.bodies import document_body
from sameface.api.openapi.responses import BODY_PROBLEMS, KEY_PROBLEMS, STORE_PROBLEMS, responses
from sameface.api.schemas.audit import AuditEntry, AuditList, AuditQuery, ReviewRequest
from sameface.model.access.audit import reviews

router = APIRouter(prefix="/v1/audit", tags=["audit"], dependencies=[ADMIN])


@router.get("", responses=responses(examples.AUDIT, *KEY_PROBLEMS, *STORE_PROBLEMS, "collection_not_found"))
async def list_audit(query: Annotated[AuditQuery, Query()], caller: Caller, gallery: Gallery) -> AuditList:
    """List changes, decisions and reviews, newest first; a key for some collections names one of them."""
    refuse_unnamed(caller, query.collection)
    found = await gallery.readers.run(
        reviews.read_audit, gallery.store, query.to_wanted(), query.limit, query.before
    )
    return AuditList.from_entries(found, query.limit)


@router.post(
    "/{entry_id}/review",
    status_code=201,
    openapi_extra=document_body(ReviewRequest, {"reviewer": "officer-17", "confirmed": True}),
    responses=responses(
        examples.REVIEWED_ENTRY,
        *BODY_PROBLEMS,
        *STORE_PROBLEMS,
        "entry_not_found",
        "collection_not_found",
        "already_exists",
        "storage_full",
        success=201,
    ),
)
async def review_entry(
    entry_id: Id,
    body: Annotated[ReviewRequest, Depends(body_of(ReviewRequest))],
    caller: Caller,
    gallery: Gallery,
) -> AuditEntry:
    """Write down that a person confirmed or rejected a decision; nobody reviews the same one twice."""
    stored = await gallery.readers.run(gallery.store.audit.get, entry_id)
    refuse_unnamed(caller, stored.entry.collection)
    reviewed = await gallery.writers.run(
        reviews.review_entry, gallery.store, entry_id, body.reviewer, confirmed=body.confirmed
    )
    return AuditEntry.from_entry(reviewed)
