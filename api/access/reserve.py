"""Reserves requests and photos of limits that machines share; asks the store on a thread if needed."""

import asyncio

from sameface.model.access.limits.limits import Allowance


async def reserve(allowance: Allowance, what: str, needed: int) -> None:
    """Reserve `needed` requests or photos (`what`); on a thread unless this machine's lease suffices."""
    if not allowance.try_reserve(what, needed):
        await asyncio.to_thread(allowance.reserve, what, needed)


async def take_photos(allowance: Allowance, photos: int) -> None:
    """Count photos; raises RateLimited, and counts none, if they are too many."""
    await reserve(allowance, "photos", photos)
    allowance.take_photos(photos)
