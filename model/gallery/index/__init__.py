"""The search index of a collection, which follows the store; the only room that knows FAISS."""
