"""The server's commands, one file each."""
