"""Keys, the audit and its seals in the store."""
