"""Requests and photos of a caller whose limits machines share: leased from the store if need be."""

import asyncio

from sameface.model.access.limits.limits import Allowance


async def reserve(allowance: Allowance, what: str, needed: int) -> None:
    """Reserve requests or photos; most are leased already, else the store is asked on a thread."""
    if not allowance.try_reserve(what, needed):
        await asyncio.to_thread(allowance.reserve, what, needed)


async def take_photos(allowance: Allowance, photos: int) -> None:
    """Count photos; raises RateLimited, and counts none, if they are too many."""
    await reserve(allowance, "photos", photos)
    allowance.take_photos(photos)
