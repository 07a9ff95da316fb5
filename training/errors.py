"""Failures of training that a caller can act on."""

from model.errors import SamefaceError


class RecipeRefused(SamefaceError):
    """The recipe asks for something that does not exist or cannot work."""

    code = "recipe_refused"


class DatasetRefused(SamefaceError):
    """The faces to learn from cannot be read, or are too few."""

    code = "dataset_refused"
