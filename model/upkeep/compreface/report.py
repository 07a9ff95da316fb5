"""What an import from CompreFace reports: numbers per service, and the examples to look at."""

from dataclasses import dataclass, field

from sameface.model.enroll_warnings import EnrollWarning
from sameface.model.errors import SamefaceError
from sameface.model.faces import Value
from sameface.model.upkeep.compreface.source import Example


@dataclass(frozen=True, slots=True)
class ExampleReport(Value):
    """An example that was enrolled with `warnings`, or was not, with the error's `code` and `detail`."""

    image_id: str
    subject: str
    code: str | None = None
    detail: str | None = None
    warnings: list[EnrollWarning] = field(default_factory=list)


@dataclass(slots=True)
class ServiceReport(Value):
    """What became of a service; `items` has only the examples that somebody should look at."""

    service: str
    collection: str | None = None
    refused: str | None = None  # why the service was left out
    people: int = 0
    enrolled: int = 0
    already_there: int = 0
    not_enrolled: int = 0
    items: list[ExampleReport] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether every example of the service is a face now."""
        return self.refused is None and not self.not_enrolled

    def reject(self, example: Example, error: SamefaceError) -> None:
        """Add an example that was not enrolled, and why."""
        self.not_enrolled += 1
        self.items.append(ExampleReport(example.image_id, example.subject, error.code, error.detail))

    def warn(self, example: Example, warnings: list[EnrollWarning]) -> None:
        """Add an enrolled example, if there are warnings about it."""
        if warnings:
            self.items.append(ExampleReport(example.image_id, example.subject, warnings=warnings))
