"""What every request passes through: its id, its time limit, its metrics."""
