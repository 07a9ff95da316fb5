"""Secret settings from files: SAMEFACE_API_KEYS_FILE names a file with what SAMEFACE_API_KEYS would hold."""

import os
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import PydanticBaseSettingsSource

from sameface.model.errors import CannotServe

SECRETS = ("api_keys", "milvus_token")  # the settings that are secret
ENDING = "_FILE"


class SecretFiles(PydanticBaseSettingsSource):
    """The secret settings whose variable ending in `_FILE` names a file, as orchestrators mount them."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:  # noqa: ARG002
        """The content of the setting's file, None without one."""
        variable = f"{self.config.get('env_prefix', '')}{field_name}".upper()
        path = os.environ.get(f"{variable}{ENDING}")
        if field_name not in SECRETS or not path:
            return None, field_name, False
        if os.environ.get(variable):
            raise CannotServe(f"Set {variable} or {variable}{ENDING}, not both.")
        try:
            lines = Path(path).expanduser().read_text("utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            said = error.strerror if isinstance(error, OSError) else "it is no text"
            raise CannotServe(f"{variable}{ENDING}: {path} cannot be read: {said}.") from None
        content = ",".join(line.strip() for line in lines if line.strip())
        if not content:
            raise CannotServe(f"{variable}{ENDING}: {path} is empty.")
        return content, field_name, False

    def __call__(self) -> dict[str, Any]:
        """The values of all secret settings that are files."""
        found = {
            name: self.get_field_value(field, name)[0]
            for name, field in self.settings_cls.model_fields.items()
        }
        return {name: value for name, value in found.items() if value}
