"""Lower precision than float32: where a device has it, and the proof that embeddings stay the same."""
