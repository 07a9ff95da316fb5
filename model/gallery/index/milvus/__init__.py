"""Milvus as a search engine: it finds candidates, and the store has the last word."""
