"""What stops upkeep: errors of commands, which no request meets."""

from sameface.model.errors import SamefaceError


class ArchiveRefused(SamefaceError):
    """A file is no archive of a collection, is damaged, or cannot be read or written."""

    code = "archive_refused"


class BackupRefused(SamefaceError):
    """A file is no backup of a gallery, is damaged, or cannot be written or restored."""

    code = "backup_refused"


class ComprefaceRefused(SamefaceError):
    """CompreFace's database or REST API cannot be read, or its key cannot be taken over."""

    code = "compreface_refused"


class ReembedRefused(SamefaceError):
    """Faces of the collection lack the crops that the new recogniser would embed."""

    code = "reembed_refused"
