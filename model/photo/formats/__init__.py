"""What one format of photos needs that the others do not."""
