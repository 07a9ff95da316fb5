"""What a network is trained to minimise: one file per loss, and what several losses share."""
