"""What `torchrun` starts: learn by each recipe, and let the first process write down losses and states.

python -m torch.distributed.run ... -m tests.training.two_processes OUT RECIPE...
"""

import json
import sys
import weakref
from contextlib import closing
from pathlib import Path

from torch import distributed

from sameface.training.distributed import join_processes
from sameface.training.loop.checkpoint import save_checkpoint
from sameface.training.recipe import read_recipe
from tests.training.runs import learn


def main() -> None:
    out, *recipes = map(Path, sys.argv[1:])
    with join_processes() as processes:
        group = weakref.ref(distributed.group.WORLD)
        for recipe in recipes:
            learner, losses = learn(read_recipe(recipe), processes)
            with closing(learner):
                state = learner.state()
            if processes.leads:
                told = json.dumps({"losses": losses, "processes": processes.count})
                save_checkpoint(out / f"{recipe.stem}.pt", {"architecture": {}, "told": told, **state})
    if group() is not None:
        sys.exit("something still holds the process group: Python may hang or abort at its exit")


if __name__ == "__main__":
    main()
