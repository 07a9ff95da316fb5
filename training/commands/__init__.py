"""The command line of training: prepare, synthesize, train, export and evaluate."""
