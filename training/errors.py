"""Failures of training that a caller can act on."""

from sameface.model.errors import SamefaceError


class RecipeRefused(SamefaceError):
    """The recipe asks for something that does not exist or cannot work."""

    code = "recipe_refused"


class DatasetRefused(SamefaceError):
    """The faces to learn from cannot be read, or are too few."""

    code = "dataset_refused"


class CheckpointRefused(SamefaceError):
    """A checkpoint cannot be written, or is not of this run."""

    code = "checkpoint_refused"


class TrainingDiverged(SamefaceError):
    """The loss is no number any more, or has grown out of hand."""

    code = "training_diverged"
