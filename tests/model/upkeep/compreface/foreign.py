"""A database with CompreFace's tables, filled as CompreFace fills them."""

import uuid
from typing import Any

import psycopg

TABLES = """
CREATE TABLE app (id bigint PRIMARY KEY, name varchar(50), guid varchar(36), api_key varchar(36));
CREATE TABLE model (
    id bigint PRIMARY KEY, name varchar(50) NOT NULL, guid varchar(36) NOT NULL, app_id bigint REFERENCES app,
    api_key varchar(36) NOT NULL UNIQUE, type char NOT NULL, created_date timestamp
);
CREATE TABLE subject (
    id uuid PRIMARY KEY, api_key varchar(36) NOT NULL REFERENCES model (api_key),
    subject_name varchar(255) NOT NULL, UNIQUE (api_key, subject_name)
);
CREATE TABLE img (id uuid PRIMARY KEY, content bytea NOT NULL);
CREATE TABLE embedding (
    id uuid PRIMARY KEY, subject_id uuid NOT NULL REFERENCES subject, embedding float8[] NOT NULL,
    calculator varchar(255) NOT NULL, img_id uuid REFERENCES img
);
INSERT INTO app VALUES (1, 'home', 'guid', 'key');
"""
# The photo of the id `kept` cannot be read while another session holds the lock. A volatile function
# would be called for all photos of the view.
GATE = """
ALTER TABLE img RENAME TO photos;
CREATE FUNCTION pass_gate(bytea) RETURNS bytea LANGUAGE sql STABLE AS
    'SELECT pg_advisory_xact_lock_shared({lock}); SELECT $1';
CREATE VIEW img AS
    SELECT id, CASE WHEN id = '{kept}' THEN pass_gate(content) ELSE content END AS content FROM photos;
"""
LOCK = 7


class ForeignDatabase:
    """CompreFace's database, which a test fills."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._services = 0
        self.connection = psycopg.connect(url, autocommit=True)
        self.connection.execute(TABLES)

    def add_service(self, name: str, kind: str = "R", api_key: str | None = None) -> str:
        """The API key of a new service."""
        api_key = api_key or str(uuid.uuid4())
        self._services += 1
        self._insert("model", self._services, name, str(uuid.uuid4()), 1, api_key, kind, None)
        return api_key

    def add_subject(self, api_key: str, name: str, *photos: bytes | None) -> list[str]:
        """The image ids of a new subject's examples; None is a photo that was not kept."""
        subject, image_ids = uuid.uuid4(), []
        self._insert("subject", subject, api_key, name)
        for photo in photos:
            image_id, kept = uuid.uuid4(), None if photo is None else uuid.uuid4()
            if kept:
                self._insert("img", kept, photo)
            self._insert("embedding", image_id, subject, [1.0], "facenet.Calculator", kept)
            image_ids.append(str(image_id))
        return image_ids

    def close_gate(self, image_id: str) -> None:
        """Let whoever reads this example's photo wait until the gate is opened."""
        kept = self.connection.execute("SELECT img_id FROM embedding WHERE id = %s", [image_id]).fetchone()
        self.connection.execute(GATE.format(lock=LOCK, kept=kept[0]))
        self.connection.execute("SELECT pg_advisory_lock(%s)", [LOCK])

    def open_gate(self) -> None:
        """Let the photo be read."""
        self.connection.execute("SELECT pg_advisory_unlock(%s)", [LOCK])

    def _insert(self, table: str, *values: Any) -> None:
        places = ", ".join(["%s"] * len(values))
        self.connection.execute(f"INSERT INTO {table} VALUES ({places})", values)
