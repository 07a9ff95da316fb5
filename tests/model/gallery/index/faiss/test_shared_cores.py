"""Searches that run at the same time share the cores."""

from concurrent.futures import ThreadPoolExecutor

from sameface.model.gallery.index.faiss.candidates import faiss
from sameface.model.gallery.index.faiss.shared_cores import SharedCores


def count_cores(cores: SharedCores, probes: int) -> int:
    """The cores that FAISS uses for a search of so many probes."""
    with cores.share(probes):
        return int(faiss.omp_get_max_threads())


def test_a_search_alone_has_all_cores_but_no_more_than_probes() -> None:
    cores = SharedCores(8)
    assert [count_cores(cores, probes) for probes in (100, 3, 1)] == [8, 3, 1]


def test_searches_at_the_same_time_have_equal_shares_and_one_core_at_least() -> None:
    cores = SharedCores(4)
    with ThreadPoolExecutor(1) as another:

        def ask() -> int:
            return another.submit(count_cores, cores, 100).result()

        with cores.share(100):
            assert ask() == 2
            with cores.share(100), cores.share(100), cores.share(100), cores.share(100):
                assert ask() == 1
        assert ask() == 4
