"""Pages of lists, as the server answers them."""

from dataclasses import dataclass

from sameface_client.answers import CollectionDescription, Person


@dataclass(frozen=True, slots=True)
class CollectionPage:
    """Some collections by name; `next_cursor` is None on the last page."""

    items: list[CollectionDescription]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class PersonPage:
    """Some people by id; `next_cursor` is None on the last page."""

    items: list[Person]
    next_cursor: str | None
