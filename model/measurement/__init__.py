"""Error rates from labelled photos: scores, intervals, groups, calibrations."""
