"""A database that cannot be opened is refused in a sentence that has nothing of its URL."""

from pathlib import Path

import psycopg
import pytest

from sameface.model.data_folder import SharedGallery
from sameface.model.errors import SamefaceError, StoreRefused, StoreUnavailable
from sameface.model.store.databases.postgres.postgres_errors import name_refusal
from sameface.model.store.store import Store
from tests.conftest import wait_for
from tests.postgres_server import ON_POSTGRES, the_server

pytestmark = pytest.mark.skipif(not ON_POSTGRES, reason="`make postgres` has a server")


@pytest.mark.parametrize(
    "url", ["postgresql://u:secret@[", "nonsense", "postgresql://u:secret@127.0.0.1/x?sslmode=bad"]
)
def test_a_wrong_url_is_said_without_printing_it(url: str, tmp_path: Path) -> None:
    with pytest.raises(StoreRefused, match="no PostgreSQL URL") as refused:
        Store(SharedGallery(url, tmp_path))
    assert "secret" not in refused.value.detail


def test_a_wrong_user_database_or_host_is_said_without_printing_it(tmp_path: Path) -> None:
    uri = the_server().server.get_uri()
    for url in (uri.replace("postgres:@", "nobody:secret@"), uri.replace("/postgres?", "/missing?")):
        with pytest.raises(StoreRefused) as refused:
            Store(SharedGallery(url, tmp_path))
        assert not any(word in refused.value.detail for word in ("secret", "nobody", "missing"))
    with pytest.raises(StoreUnavailable) as away:
        Store(SharedGallery("postgresql://nobody:secret@127.0.0.1:1/x", tmp_path))
    assert not any(word in away.value.detail for word in ("secret", "nobody", "127"))


@pytest.mark.parametrize(
    ("sentence", "after_password", "named"),
    [
        (
            "failed: FATAL:  Passwort-Authentifizierung für Benutzer »ada« fehlgeschlagen",
            True,
            StoreRefused,
        ),
        (
            'failed: FATAL:  password authentication failed for user "ada"',
            True,
            StoreRefused,
        ),
        (
            "failed: FATAL:  remaining connection slots are reserved for superusers",
            True,
            StoreUnavailable,
        ),
        (
            "failed: server closed the connection unexpectedly",
            True,
            StoreUnavailable,
        ),
        ("failed: FATAL:  das Datenbanksystem startet", False, StoreUnavailable),
        (
            "failed to resolve host 'db.invalid': [Errno -2] Name or service not known",
            False,
            StoreUnavailable,
        ),
        ('connection is bad: invalid sslmode value: "bad"', False, StoreRefused),
        ('connection is bad: invalid port number: "99999"', False, StoreRefused),
        ('invalid integer value "abc" for connection option "port"', False, StoreRefused),
    ],
)
def test_a_wrong_password_is_known_in_every_language_and_other_failures_pass(
    sentence: str, after_password: bool, named: type[SamefaceError]
) -> None:
    assert (
        type(name_refusal(f"connection to server at db {sentence}", after_password=after_password)) is named
    )


def test_a_wrong_password_is_refused(tmp_path: Path) -> None:
    rules, uri = the_server().folder / "data" / "pg_hba.conf", the_server().server.get_uri()
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute("CREATE ROLE ada LOGIN PASSWORD 'right'")
        rules.write_text(f"local all ada scram-sha-256\n{rules.read_text()}")
        connection.execute("SELECT pg_reload_conf()")

    def is_refused(password: str) -> bool:
        with pytest.raises(SamefaceError) as refused:
            Store(SharedGallery(uri.replace("postgres:@", f"ada:{password}@"), tmp_path))
        assert password not in refused.value.detail
        return refused.type is StoreRefused and "password" in refused.value.detail

    wait_for(lambda: is_refused("wrong"))
