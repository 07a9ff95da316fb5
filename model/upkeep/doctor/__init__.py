"""What `sameface doctor` looks at: the machine and its engines, the networks, the data folder."""
