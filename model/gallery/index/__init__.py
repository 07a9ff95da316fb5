"""The search indexes, which follow the store: a room per engine."""
