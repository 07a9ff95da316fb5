"""What happens to the machines while clients work: kills, cuts and restarts, spread over the run."""

import random
import time
from collections.abc import Callable

from benchmarks.rivals.milvus_server import MilvusServer
from tests.machines.hosts import PostgresHost, SamefaceHost
from tests.machines.network import Network

RESTARTS = 5  # of PostgreSQL
LONG_CUT = 1 / 5  # of the run: a minute of five
SHORT_CUT, DOWN = 1 / 20, 1 / 40  # of the run: another cut, and how long a killed host stays down
PER_MILVUS_KILL = 100.0  # seconds of the run for each


class Trouble:
    """One trouble after the other until the time is over; `done` says what there was."""

    def __init__(
        self,
        network: Network,
        database: PostgresHost,
        hosts: list[SamefaceHost],
        milvus: MilvusServer | None,
        until: float,
    ) -> None:
        self.network, self.database, self.hosts, self.milvus = network, database, hosts, milvus
        self.until, self.seconds = until, until - time.monotonic()
        self.chance = random.Random(1)
        self.done: list[str] = []

    def make(self) -> None:
        """Make all troubles of the plan, with pauses of different lengths between them."""
        plan = self.plan()
        for turn, trouble in enumerate(plan):
            held = self.seconds * (LONG_CUT if self.cut_long in plan[turn:] else 0)
            spare = self.until - time.monotonic() - held
            time.sleep(max(0.0, spare / (len(plan) + 1 - turn) * self.chance.uniform(0.4, 1.0)))
            self.done.append(trouble())

    def plan(self) -> list[Callable[[], str]]:
        """PostgreSQL's restarts with another trouble after each, and Milvus's kills between them."""
        others = [self.kill_host, self.cut_long, self.kill_host, self.cut_short, self.kill_host]
        plan = [each for other in others for each in (self.restart_database, other)]
        assert plan.count(self.restart_database) == RESTARTS
        kills = max(1, int(self.seconds / PER_MILVUS_KILL)) if self.milvus else 0
        for number in range(kills):
            plan.insert(len(plan) - 3 * number, self.kill_milvus)
        return plan

    def restart_database(self) -> str:
        """Restart PostgreSQL, every second time without shutting it down."""
        how = "immediate" if sum("PostgreSQL" in each for each in self.done) % 2 else "fast"
        self.database.control("restart", "-m", how)
        return f"PostgreSQL restarted ({how})"

    def kill_host(self) -> str:
        """Kill a host with -9, and start it again after a while."""
        host = self.chance.choice(self.hosts)
        host.kill()
        time.sleep(self.seconds * DOWN)
        host.start()
        return f"{host.name} killed"

    def cut_long(self) -> str:
        """Cut a host off for a fifth of the run."""
        return self._cut(self.seconds * LONG_CUT)

    def cut_short(self) -> str:
        """Cut a host off for a moment."""
        return self._cut(self.seconds * SHORT_CUT)

    def kill_milvus(self) -> str:
        """Kill Milvus with -9, and start it again after a while."""
        assert self.milvus
        self.milvus.kill()
        time.sleep(self.seconds * DOWN)
        started = time.monotonic()
        self.milvus.start()
        return f"Milvus killed, and back {time.monotonic() - started:.0f} s after its start"

    def _cut(self, seconds: float) -> str:
        host = self.chance.choice(self.hosts)
        self.network.cut(host.name)
        time.sleep(seconds)
        self.network.join(host.name)
        return f"{host.name} cut off for {seconds:.0f} s"
