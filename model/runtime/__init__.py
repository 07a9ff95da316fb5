"""Running a network: the device, sessions, prepared graphs, batches, and the queue before them."""
