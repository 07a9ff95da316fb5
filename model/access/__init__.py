"""Who may call, and what was done: API keys, scopes and limits; the audit, its seals, and the secret key."""
