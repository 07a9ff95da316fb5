"""A sketch of a set of photos: enough to notice that two sets share some, too little to tell which."""

from collections.abc import Collection, Iterable

KEPT = 512  # photos: of a set that has a hundredth in common with another, five are expected among them
DIGITS = 10  # of a photo's SHA-256: few enough to meet by chance in no set, and no fingerprint of the photo


def draw_sketch(digests: Iterable[str]) -> str:
    """The lowest digests, cut short and written without a gap: the same random sample of the same photos."""
    return "".join(sorted({digest[:DIGITS] for digest in digests})[:KEPT])


def estimate_overlap(sketch: str, photos: int, digests: Collection[str]) -> float | None:
    """The share of `digests` that are among the `photos` photos of a sketch; None without a sketch."""
    marks = {sketch[start : start + DIGITS] for start in range(0, len(sketch), DIGITS)}
    if not marks or not digests:
        return None
    found = len(marks & {digest[:DIGITS] for digest in digests})
    return min(1.0, found / len(marks) * photos / len(digests))
