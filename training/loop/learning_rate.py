"""The learning rate of every step."""

import math

from sameface.training.recipe import Recipe


def learning_rate_at(step: int, recipe: Recipe) -> float:
    """The learning rate of `step`: a linear rise, then half a cosine to 0 or drops to a tenth."""
    schedule, peak = recipe.schedule, recipe.optimiser.rate
    rising = round(schedule.warm_up * recipe.steps)
    if step < rising:
        return peak * (step + 1) / rising
    if schedule.kind == "step":
        return peak * 0.1 ** sum(step >= drop * recipe.steps for drop in schedule.drops)
    return peak * (1 + math.cos(math.pi * (step - rising) / max(1, recipe.steps - rising))) / 2
