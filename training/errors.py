"""Failures of training that a caller can act on."""

from model.errors import SamefaceError


class RecipeRefused(SamefaceError):
    """The recipe asks for something that does not exist or cannot work."""

    code = "recipe_refused"
