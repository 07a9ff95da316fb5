"""The durable truth of everything that is kept; the only room that knows a database."""
