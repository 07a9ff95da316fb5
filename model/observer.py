"""What is worth watching while a server works, told to whoever listens."""


class Observer:
    """Listens to nothing; a server's metrics listen."""

    def stage(self, name: str, seconds: float) -> None:
        """A stage of the path took so long for one photo or probe."""

    def queue(self, jobs: int) -> None:
        """So many jobs wait or run now."""

    def faces(self, count: int) -> None:
        """A photo shows so many faces."""

    def batch(self, size: int) -> None:
        """So many crops went through the recogniser at once."""

    def similarity(self, kind: str, value: float) -> None:
        """The similarity that a decision was made on, of `verify` or `identify`."""


SILENT = Observer()
