"""The search index of a collection in memory; the only room that knows FAISS."""
