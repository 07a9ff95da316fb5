"""Damaged pictures of every format: always an answer, never a 500."""

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sameface.api.errors import PROBLEMS
from tests.attack.crafted_photos import PICTURES

mutations = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=12)


@given(
    picture=st.sampled_from(PICTURES),
    mutations=mutations,
    in_header=st.booleans(),
    cut=st.one_of(st.none(), st.floats(0, 1)),
    tail=st.binary(max_size=30),
)
@settings(max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damaged_picture_is_an_internal_error(
    client: httpx.Client,
    picture: bytes,
    mutations: list[tuple[float, int]],
    in_header: bool,
    cut: float | None,
    tail: bytes,
) -> None:
    damaged = bytearray(picture)
    reach = min(100, len(damaged)) if in_header else len(damaged)
    for place, value in mutations:
        damaged[int(place * reach)] = value
    photo = bytes(damaged if cut is None else damaged[: int(cut * len(damaged))]) + tail
    response = client.post("/v1/embed", files={"image": photo})
    if response.status_code != 200:
        status, _ = PROBLEMS[response.json()["code"]]
        assert response.status_code == status < 500, response.text
