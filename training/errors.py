"""Failures of training that a caller can act on."""

from sameface.model.errors import SamefaceError


class RecipeRefused(SamefaceError):
    """The recipe asks for something that does not exist or cannot work."""

    code = "recipe_refused"


class DatasetRefused(SamefaceError):
    """The faces to train on cannot be read or written, or are too few."""

    code = "dataset_refused"


class CheckpointRefused(SamefaceError):
    """A checkpoint cannot be written or read, or does not fit the recipe."""

    code = "checkpoint_refused"


class TrainingDiverged(SamefaceError):
    """The loss or its gradient is not finite, or the loss has grown far above its first values."""

    code = "training_diverged"
