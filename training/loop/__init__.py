"""The training loop: optimiser steps, checkpoints, the log, and the accuracy on pairs meanwhile."""
