"""One script per question, each prints one table."""

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # for scripts that load ONNX Runtime themselves
