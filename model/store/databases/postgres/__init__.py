"""What is particular to PostgreSQL: connections, how it takes rows, errors, notices between machines."""
