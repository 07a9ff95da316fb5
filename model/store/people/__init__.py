"""People and faces in the store: enrolled, looked up by ids or names, moved and deleted in bulk."""
