"""What threads free is used by the others and returned, and what stays is looked at once."""

import subprocess
import sys

import pytest

COUNT_ARENAS = """
import ctypes, sys, threading
from sameface.model.runtime.memory import return_freed_memory, use_few_arenas
if sys.argv[1] == "few":
    use_few_arenas()
end = threading.Barrier(9)
def allocate():
    kept = [bytearray(1000) for _ in range(1000)]
    end.wait()
threads = [threading.Thread(target=allocate) for _ in range(8)]
[thread.start() for thread in threads]
end.wait()
[thread.join() for thread in threads]
return_freed_memory()
ctypes.CDLL("libc.so.6").malloc_stats()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc has arenas")
@pytest.mark.parametrize("kind", ["few", "default"])
def test_threads_share_two_arenas(kind: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", COUNT_ARENAS, kind], capture_output=True, text=True, check=True
    )
    arenas = ran.stderr.count("Arena ")
    assert arenas <= 2 if kind == "few" else arenas > 2


FREEZE = """
import gc, weakref
from sameface.model.runtime.memory import keep_what_is_loaded
class Thing: pass
def make():
    thing = Thing()
    thing.itself = thing
    return weakref.ref(thing)
before = make()
keep_what_is_loaded()
after = make()
gc.collect()
print(before() is None, after() is None, gc.get_freeze_count() > 10_000)
"""


def test_what_is_loaded_is_passed_over_and_what_comes_later_is_collected() -> None:
    ran = subprocess.run([sys.executable, "-c", FREEZE], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["True", "True", "True"]
