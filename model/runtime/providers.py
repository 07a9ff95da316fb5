"""The execution providers of ONNX Runtime that networks run on, by device: the first that loads is taken."""

import onnxruntime

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
PROVIDERS = {"cpu": [CPU], "gpu": [CUDA, CPU]}


def list_providers() -> list[str]:
    """The execution providers of the installed ONNX Runtime, the libraries of CUDA loaded if it has them."""
    providers: list[str] = onnxruntime.get_available_providers()
    if CUDA in providers:
        onnxruntime.preload_dlls()
    return providers
