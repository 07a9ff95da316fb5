"""The tables and their versions, and what is particular to SQLite and to PostgreSQL."""
