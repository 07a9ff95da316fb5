"""What can be watched from outside: counts and times, and no picture, name or embedding."""

import asyncio
import os
import struct
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sameface.model.gallery.gallery import Gallery
from sameface.model.observer import Observer
from sameface.model.pipeline import Pipeline

CLIENT_GONE = 499  # in the place of a status, of one that left before its answer
SHARED = "PROMETHEUS_MULTIPROC_DIR"  # where several processes count together
SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
SIMILARITIES = tuple(round(-0.2 + 0.05 * step, 2) for step in range(25))
FACES = (0, 1, 2, 3, 5, 10, 20, 50)
BATCHES = (1, 2, 4, 8, 16, 32, 64)
PATIENCE = 20  # times that a file which is being made is looked at again
EXAMPLE = """\
# HELP sameface_requests_total Requests by route and status.
# TYPE sameface_requests_total counter
sameface_requests_total{route="/v1/verify",status="200"} 1207.0
"""

router = APIRouter(tags=["health"])


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}, "example": EXAMPLE}}}},
)
async def metrics(request: Request) -> Response:
    """Say how much is asked, how long it takes and how far the gallery is, for Prometheus."""
    watched: Metrics = request.app.state.metrics
    content = await asyncio.to_thread(watched.collect)
    return Response(content, media_type="text/plain; version=0.0.4; charset=utf-8")


class Metrics(Observer):
    """Counts what happens in this process; where several serve, what is shown is that of all of them."""

    def __init__(self) -> None:
        # Only now: when it is imported it looks whether several processes count together.
        import prometheus_client as prometheus

        prometheus.disable_created_metrics()  # a series for each series, which nobody looks at
        self.prometheus = prometheus
        self.gallery: Gallery | None = None
        own = self.registry = prometheus.CollectorRegistry()
        self.requests = prometheus.Counter(
            "sameface_requests", "Requests by route and status.", ["route", "status"], registry=own
        )
        self.refused = prometheus.Counter(
            "sameface_refused", "Requests that got a problem, by its code.", ["code"], registry=own
        )
        self.request_seconds = prometheus.Histogram(
            "sameface_request_seconds",
            "From the first byte of a request to the last of its answer.",
            ["route"],
            buckets=SECONDS,
            registry=own,
        )
        self.stage_seconds = prometheus.Histogram(
            "sameface_stage_seconds", "Of one photo or probe.", ["stage"], buckets=SECONDS, registry=own
        )
        self.queued = prometheus.Gauge(
            "sameface_queue_photos",
            "Photos that wait or are worked on.",
            multiprocess_mode="livesum",
            registry=own,
        )
        self.faces_found = prometheus.Histogram(
            "sameface_faces_per_photo", "Faces found in a photo.", buckets=FACES, registry=own
        )
        self.batches = prometheus.Histogram(
            "sameface_batch_size", "Crops per pass of the recogniser.", buckets=BATCHES, registry=own
        )
        self.similarities = prometheus.Histogram(
            "sameface_similarity", "Of decisions.", ["kind"], buckets=SIMILARITIES, registry=own
        )
        self.runtime = prometheus.Gauge(
            "sameface_runtime",
            "What it runs on.",
            ["device", "provider", "recognizer", "detector"],
            multiprocess_mode="livemax",
            registry=own,
        )

    def stage(self, name: str, seconds: float) -> None:
        """A stage of the path took so long."""
        self.stage_seconds.labels(name).observe(seconds)

    def queue(self, jobs: int) -> None:
        """So many jobs wait or run now."""
        self.queued.set(jobs)

    def faces(self, count: int) -> None:
        """A photo shows so many faces."""
        self.faces_found.observe(count)

    def batch(self, size: int) -> None:
        """So many crops went through the recogniser at once."""
        self.batches.observe(size)

    def similarity(self, kind: str, value: float) -> None:
        """The similarity that a decision was made on."""
        self.similarities.labels(kind).observe(value)

    def request(self, route: str, status: int, seconds: float, problem: str | None) -> None:
        """A request was answered."""
        self.requests.labels(route, str(status)).inc()
        self.request_seconds.labels(route).observe(seconds)
        if problem:
            self.refused.labels(problem).inc()

    def ready(self, pipeline: Pipeline, gallery: Gallery) -> None:
        """The networks are warm."""
        self.gallery = gallery
        runtime = pipeline.embedder.sessions
        names = pipeline.embedder.bundle.contract.name, pipeline.detector.bundle.contract.name
        self.runtime.labels(runtime.device, runtime.provider, *names).set(1)

    def collect(self) -> bytes:
        """Everything, as Prometheus reads it; a process that starts just now has files without a head yet."""
        for _ in range(PATIENCE):
            with suppress(struct.error):
                return self.collect_now()
            time.sleep(0.01)
        return self.collect_now()

    def collect_now(self) -> bytes:
        """Everything, if all files can be read."""
        shown = self.prometheus.CollectorRegistry()
        if os.environ.get(SHARED):
            from prometheus_client.multiprocess import MultiProcessCollector

            MultiProcessCollector(shown)
        else:
            shown.register(self.registry)
        shown.register(GalleryCollector(self.gallery))
        return self.prometheus.generate_latest(shown)


@contextmanager
def counting_together() -> Iterator[Callable[[int], None]]:
    """For processes that are forked in this block; call what it gives with the id of one that has ended."""
    with tempfile.TemporaryDirectory(prefix="sameface-metrics-") as shared:
        os.environ[SHARED] = shared

        def forget(process: int) -> None:
            from prometheus_client.multiprocess import mark_process_dead

            mark_process_dead(process, shared)  # its counts stay, what it was doing just now does not

        yield forget


class GalleryCollector:
    """The gallery as it is now, read when somebody asks."""

    def __init__(self, gallery: Gallery | None) -> None:
        self.gallery = gallery

    def collect(self) -> Iterable[Any]:
        """Sizes, and how far the indexes of this process are behind the store."""
        from prometheus_client.core import GaugeMetricFamily

        if self.gallery is None:
            return
        collections = self.gallery.store.collections.page()
        lags = [self.gallery.indexes.lag_of(collection) for collection in collections]
        figures = {
            "collections": ("Collections.", len(collections)),
            "people": ("Enrolled people.", sum(collection.people for collection in collections)),
            "faces": ("Enrolled faces.", sum(collection.faces for collection in collections)),
            "lag": ("Changes that the index furthest behind has yet to follow.", max(lags, default=0)),
        }
        for name, (text, value) in figures.items():
            yield GaugeMetricFamily(f"sameface_gallery_{name}", text, value=value)


class RequestMeter:
    """Counts every request with its route, status and time."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection event."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        count = partial(self.count, scope, time.perf_counter())
        status = CLIENT_GONE

        async def send_and_look(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            elif not message.get("more_body", False):
                count(status)  # before it is out: whoever has an answer finds it counted
            await send(message)

        try:
            return await self.app(scope, receive, send_and_look)
        finally:
            if status == CLIENT_GONE:
                count(CLIENT_GONE)

    def count(self, scope: Scope, started: float, status: int) -> None:
        """A request that is answered now."""
        route = getattr(scope.get("route"), "path", "none")  # never the address itself: ids are in it
        problem = scope.get("state", {}).get("problem")
        self.metrics.request(route, status, time.perf_counter() - started, problem)
