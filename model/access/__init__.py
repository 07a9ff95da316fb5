"""Who may call: API keys, scopes, and limits."""
