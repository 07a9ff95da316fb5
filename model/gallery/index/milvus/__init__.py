"""Milvus as a search engine: it finds candidates, which are ranked by the store's embeddings."""
