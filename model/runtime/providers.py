"""The execution providers of ONNX Runtime that networks run on, by device: the first that loads is taken."""

import onnxruntime

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
PROVIDERS = {"cpu": [CPU], "gpu": [CUDA, CPU]}


def list_providers() -> list[str]:
    """The execution providers of ONNX Runtime; if CUDA is among them, its libraries are loaded."""
    providers: list[str] = onnxruntime.get_available_providers()
    if CUDA in providers:
        onnxruntime.preload_dlls()
    return providers
