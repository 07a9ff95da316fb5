"""The networks that turn aligned crops into embeddings, and what they cost."""
