import asyncio

import pytest

from sameface.model.actor import LOCAL, Actor, acting, current_actor
from sameface.model.parallel import Threads


def test_work_in_process_is_local():
    assert current_actor() == LOCAL
    assert current_actor().caller == "local"


def test_an_actor_acts_until_the_end_of_the_block():
    ada = Actor("ada", "r1", "/v1/verify")
    with acting(ada):
        assert current_actor() == ada
    assert current_actor() == LOCAL


def test_an_actor_whose_work_fails_acts_no_longer():
    with pytest.raises(ZeroDivisionError), acting(Actor("ada")):
        1 / 0  # noqa: B018
    assert current_actor() == LOCAL


def test_threads_work_on_behalf_of_whoever_asked():
    async def ask(caller: str, threads: Threads) -> str:
        with acting(Actor(caller)):
            await asyncio.sleep(0)
            return (await threads.run(current_actor)).caller

    async def ask_all() -> list[str]:
        threads = Threads(1, "test")
        try:
            return await asyncio.gather(*(ask(caller, threads) for caller in ("ada", "bob", "carl")))
        finally:
            threads.close()

    assert asyncio.run(ask_all()) == ["ada", "bob", "carl"]
