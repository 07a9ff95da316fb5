"""From a name, of a person's folder or of a subject, to the id of that person."""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Container, Iterator
from itertools import count

from sameface.model.store.records import ID_LENGTH, is_id

# Letters that Unicode does not take apart into a letter and an accent.
FOLDED = str.maketrans({"ß": "ss", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O", "ł": "l"})
FOLDED |= str.maketrans({"Ł": "L", "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th", "ı": "i"})
LONGEST = ID_LENGTH - 20  # leaves room for a hash or a number


def make_person_id(name: str) -> str:
    """The id that a name gives: itself if it is one, else without accents and with - for the rest.

    Letters of other alphabets are left out, and a hash of the name makes up for them.
    """
    if is_id(name) and len(name) <= LONGEST:
        return name
    apart = unicodedata.normalize("NFKD", name.translate(FOLDED))
    bare = "".join(letter for letter in apart if not unicodedata.combining(letter))
    lost = any(letter.isalnum() and not letter.isascii() for letter in bare) or len(bare) > LONGEST
    kept = re.sub(r"[^A-Za-z0-9._~]+", "-", bare)[:LONGEST].strip("-.")
    if kept and not lost:
        return kept
    digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return f"{kept or 'person'}-{digest}"


def list_ids(name: str) -> Iterator[str]:
    """The ids that a person of this name may have, the best first, without an end."""
    made = make_person_id(name)
    yield made
    for number in count(2):
        yield f"{made}-{number}"


def choose_id(name: str, taken: Container[str], find_name: Callable[[str], str | None]) -> str:
    """The id of the person called `name`: the first that no other person has, here or among those `taken`.

    `find_name` gives the name of the enrolled person of an id, None if there is no such person or no name.
    """
    for candidate in list_ids(name):
        if candidate in taken:
            continue
        known = find_name(candidate)
        # A person whose id was not made from the name they have now was renamed: it is theirs still.
        if known in (None, name) or make_person_id(known or "") != candidate:
            return candidate
    raise AssertionError("there is always another id")
