"""The audit as a file: JSON lines of entries and seals, and a last line that is signed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sameface.model.access.audit.check_audit import Checker, Line, Verdict, read_lines
from sameface.model.access.audit.seals import PURPOSE, seal_audit
from sameface.model.access.secret_key import SecretKey, load_secret_key, secret_key_of
from sameface.model.errors import AuditRefused
from sameface.model.files import replacing
from sameface.model.store.access.audit import write_compactly
from sameface.model.store.store import Store

MAX_LINE_BYTES = 10_000_000  # a seal that joins some hundred thousand chains


def export_audit(store: Store, path: Path) -> int:
    """Seal the audit and write all of it into a file that only its owner may read; returns its entries."""
    if not store.read_only:
        seal_audit(store)
    key, entries, last = secret_key_of(store), 0, None
    try:
        with store.frozen(), replacing(path, private=True) as file:
            for line in read_lines(store):
                file.write(json.dumps(line).encode() + b"\n")
                entries += "seal" not in line
                last = line.get("signature", last)
            end = {"entries": entries, "last_seal": last}
            signature = key.sign(PURPOSE, write_compactly(end))
            file.write(json.dumps({"end": end, "signature": signature}).encode() + b"\n")
    except OSError as error:
        raise AuditRefused(f"{path} cannot be written: {error.strerror}.") from error
    return entries


def check_file(path: Path, folder: Path) -> Verdict:
    """Check an exported audit with the secret key of the environment, or of the data folder `folder`."""
    checker = Checker(lambda: load_secret_key(folder, make=False))
    end: Line | None = None
    last: str | None = None
    for number, line in enumerate(read_file(path), 1):
        if end:
            checker.fault(f"line {number} comes after the end")
            break
        try:
            if "end" in line:
                end = line
            else:
                checker.read([line])
                last = line["signature"] if "seal" in line else last
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise AuditRefused(f"Line {number} of {path} is no entry and no seal ({error!r}).") from error
    found = {"entries": checker.entries, "last_seal": last}
    if end is None:
        checker.fault("the file is cut: it has no last line")
    elif end["end"] != found or not is_signed(checker.find_key(), end):
        checker.fault("the last line does not fit the lines before it: some are missing, or it was altered")
    return checker.verdict()


def is_signed(key: SecretKey, end: dict[str, Any]) -> bool:
    """Whether the last line is signed with `key`."""
    return key.has_signed(PURPOSE, write_compactly(end["end"]), str(end.get("signature")))


def read_file(path: Path) -> Iterator[Line]:
    """The lines of a file as JSON objects."""
    try:
        with path.open("rb") as file:
            number = 0
            while text := file.readline(MAX_LINE_BYTES):
                number += 1
                line = json.loads(text)
                if not isinstance(line, dict):
                    raise AuditRefused(f"Line {number} of {path} is no JSON object: this is no export.")
                yield line
    except OSError as error:
        raise AuditRefused(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise AuditRefused(
            f"Line {number} of {path} is no JSON: the file is cut or edited, or no export of an audit."
        ) from error
