"""What there is in CompreFace: recognition services, their subjects, and an example per photo."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Service:
    """A recognition service: its name, its API key, and how many examples it has."""

    name: str
    api_key: str = field(repr=False)
    examples: int


@dataclass(frozen=True, slots=True)
class Example:
    """A photo of a subject, by the id that clients know."""

    image_id: str
    subject: str


class Source(Protocol):
    """Where a CompreFace is read: its database, or its REST API."""

    def list_services(self) -> list[Service]:
        """The recognition services that are to be imported."""

    def list_subjects(self, service: Service) -> list[str]:
        """The names of a service's subjects, those without an example too."""

    def list_examples(self, service: Service) -> Iterator[Example]:
        """Yield the examples of a service."""

    def read_photos(self, service: Service, image_ids: Sequence[str]) -> dict[str, bytes]:
        """By image id: the photos; those that CompreFace did not keep are left out."""

    def close(self) -> None:
        """Close the connections."""
