"""One script per question, each prints one table."""
