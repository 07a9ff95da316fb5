"""API keys and their scopes: who calls, and what the caller may do."""
