"""Memory of a process that lives long: glibc is to return what nobody uses, other libcs need no asking."""

import ctypes
import gc
import sys
from contextlib import suppress

M_ARENA_MAX = -8  # of malloc.h
ARENAS = 2


def use_few_arenas() -> None:
    """Let all threads share two arenas, called before they start.

    By default each thread gets an arena of its own, up to eight per core, and what a request left there
    is of no use to the others: after hostile inputs a server kept a third more, and with two arenas 2 %.
    """
    ask_glibc("mallopt", M_ARENA_MAX, ARENAS)


def return_freed_memory() -> None:
    """Return freed memory to the system."""
    ask_glibc("malloc_trim", 0)


def keep_what_is_loaded() -> None:
    """Have the garbage collector pass over everything there is now: it lives as long as the process.

    Looking through it again and again, for what requests leave behind, took batches of embeddings 8 % of
    their time; verifications show no difference.
    """
    gc.collect()
    gc.freeze()


def ask_glibc(function: str, *arguments: int) -> None:
    """Call a function of glibc, where there is one."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            getattr(ctypes.CDLL("libc.so.6"), function)(*arguments)
