"""Why a server cannot answer now; the last two are the client's own."""

from sameface_client.errors.failure import SamefaceError


class Overloaded(SamefaceError):
    """The server is busy, and was after the last retry."""

    code = "overloaded"


class RateLimited(SamefaceError):
    """The key has used up what it may use in this time."""

    code = "rate_limited"


class Internal(SamefaceError):
    """The server failed: its log has the details under `request_id`."""

    code = "internal"


class NotReady(SamefaceError):
    """The server is still starting."""

    code = "not_ready"


class StoreDamaged(SamefaceError):
    """The gallery's file is damaged."""

    code = "store_damaged"


class StoreRefused(SamefaceError):
    """The gallery's file cannot be used."""

    code = "store_refused"


class StoreUnavailable(SamefaceError):
    """The gallery's database does not answer."""

    code = "store_unavailable"


class IndexUnavailable(SamefaceError):
    """The gallery's index does not answer."""

    code = "index_unavailable"


class IndexRefused(SamefaceError):
    """The gallery's index cannot be used."""

    code = "index_refused"


class TimedOut(SamefaceError):
    """The request took longer than the server allows."""

    code = "timed_out"


class StorageFull(SamefaceError):
    """The server has no room left to write."""

    code = "storage_full"


class ConnectionFailed(SamefaceError):
    """The server cannot be reached, or the connection broke or was silent too long."""

    code = "connection_failed"


class UnexpectedAnswer(SamefaceError):
    """Something answered that is no sameface server: a proxy, perhaps."""

    code = "unexpected_answer"
