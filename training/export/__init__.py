"""From a checkpoint to a bundle: ONNX, smaller variants, and the model card."""
