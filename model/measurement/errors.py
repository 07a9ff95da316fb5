"""What stops a measurement: errors of commands, which no request meets."""

from sameface.model.errors import SamefaceError


class LabelsRefused(SamefaceError):
    """Error rates cannot be measured on these labelled photos, or with this CSV of groups."""

    code = "labels_refused"


class PairsRefused(SamefaceError):
    """A list of pairs to measure accuracy on cannot be read."""

    code = "pairs_refused"
