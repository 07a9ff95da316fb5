"""The two libraries that do the same, in this process and through a server, and what each opens."""

from types import ModuleType
from typing import TypeAlias

import sameface
import sameface_client

Library: TypeAlias = ModuleType  # sameface or sameface_client
Faces: TypeAlias = sameface.Faces | sameface_client.Faces
