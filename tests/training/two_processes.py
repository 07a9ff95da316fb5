"""What `torchrun` starts: learn, and let the first process write down the losses and the state.

python -m torch.distributed.run ... -m tests.training.two_processes RECIPE OUT
"""

import json
import sys
from pathlib import Path

from tests.training.runs import learn
from training.checkpoint import save_checkpoint
from training.processes import join_processes
from training.recipe import read_recipe


def main() -> None:
    recipe, out = Path(sys.argv[1]), Path(sys.argv[2])
    with join_processes() as processes:
        learner, losses = learn(read_recipe(recipe), processes)
        state = learner.state()
        if processes.leads:
            save_checkpoint(out / "joined.pt", {"architecture": {}, **state})
            (out / "losses.json").write_text(json.dumps({"losses": losses, "processes": processes.count}))


if __name__ == "__main__":
    main()
