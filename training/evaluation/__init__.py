"""The error rates of a bundle on test data, with intervals, curves and a report."""
