"""Prometheus metrics: counts and durations, but no photo, name or embedding."""

import os
import shutil
import struct
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sameface.model.errors import StoreUnavailable
from sameface.model.gallery.gallery import Gallery
from sameface.model.gallery.size import measure_size
from sameface.model.observer import Observer
from sameface.model.pipeline import Pipeline

METRICS_FOLDER = "sameface-metrics-"  # and the id of the supervisor
SHARED = "PROMETHEUS_MULTIPROC_DIR"  # the folder through which workers add up their metrics
SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
SIMILARITIES = tuple(round(-0.2 + 0.05 * step, 2) for step in range(25))
FACES = (0, 1, 2, 3, 5, 10, 20, 50)
BATCHES = (1, 2, 4, 8, 16, 32, 64)
MOST_CALLERS = 500  # that a process counts one by one
OTHERS = "others"
PATIENCE = 20  # retries while a starting worker is writing its file


class Metrics(Observer):
    """Prometheus metrics of this worker; with several workers, /metrics shows their sum."""

    def __init__(self) -> None:
        # Imported late: on import, prometheus_client looks whether PROMETHEUS_MULTIPROC_DIR is set.
        import prometheus_client as prometheus

        prometheus.disable_created_metrics()  # else every counter gets a second series, its time of creation
        self.prometheus = prometheus
        self.gallery: Gallery | None = None
        self.callers: set[str] = set()
        self.similarities_of: dict[str, Any] = {}  # by operation: a batch has thousands of them
        own = self.registry = prometheus.CollectorRegistry()
        self.requests = prometheus.Counter(
            "sameface_requests",
            "Requests by route, status and caller.",
            ["route", "status", "caller"],
            registry=own,
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
        self.lost = prometheus.Counter(
            "sameface_audit_lost", "Decisions that could not be written into the audit.", registry=own
        )
        self.open_connections = prometheus.Gauge(
            "sameface_connections", "Open connections.", multiprocess_mode="livesum", registry=own
        )
        self.cut_connections = prometheus.Counter(
            "sameface_cut_connections", "Connections that were cut, by reason.", ["reason"], registry=own
        )
        self.last_backup = prometheus.Gauge(
            "sameface_last_backup_timestamp_seconds",
            "When the newest scheduled backup was made.",
            multiprocess_mode="livemax",
            registry=own,
        )
        self.failed_backups = prometheus.Counter(
            "sameface_failed_backups", "Scheduled backups that could not be made.", registry=own
        )
        self.runtime = prometheus.Gauge(
            "sameface_runtime",
            "What it runs on.",
            ["device", "provider", "recognizer", "detector"],
            multiprocess_mode="livemax",
            registry=own,
        )

    def stage(self, name: str, seconds: float) -> None:
        """Observe the duration of a stage."""
        self.stage_seconds.labels(name).observe(seconds)

    def queue(self, jobs: int) -> None:
        """Set the number of photos in the queue."""
        self.queued.set(jobs)

    def faces(self, count: int) -> None:
        """Observe the number of faces in a photo."""
        self.faces_found.observe(count)

    def batch(self, size: int) -> None:
        """Observe the size of a forward pass."""
        self.batches.observe(size)

    def similarity(self, operation: str, value: float) -> None:
        """Observe the similarity of a decision."""
        if operation not in self.similarities_of:
            self.similarities_of[operation] = self.similarities.labels(operation)
        self.similarities_of[operation].observe(value)

    def backup(self, made_at: float) -> None:
        """Set the time of the newest backup."""
        self.last_backup.set(made_at)

    def failed_backup(self) -> None:
        """Count a backup that could not be made."""
        self.failed_backups.inc()

    def lost_decisions(self, count: int) -> None:
        """Count decisions that the audit lacks."""
        self.lost.inc(count)

    def request(self, route: str, status: int, caller: str, seconds: float, problem: str | None) -> None:
        """Count a request, observe its duration and, if it got a problem, count the code `problem`."""
        self.requests.labels(route, str(status), self.name_caller(caller)).inc()
        self.request_seconds.labels(route).observe(seconds)
        if problem:
            self.refused.labels(problem).inc()

    def name_caller(self, caller: str) -> str:
        """The label for `caller`; one for all beyond `MOST_CALLERS`, because labels are never freed."""
        if caller not in self.callers and len(self.callers) >= MOST_CALLERS:
            return OTHERS
        self.callers.add(caller)
        return caller

    def connections(self, count: int) -> None:
        """Set the number of open connections."""
        self.open_connections.set(count)

    def cut_connection(self, reason: str) -> None:
        """Count a connection that was cut before its request was answered."""
        self.cut_connections.labels(reason).inc()

    def ready(self, pipeline: Pipeline, gallery: Gallery) -> None:
        """Publish what `pipeline` runs on and, from now on, the sizes of `gallery`."""
        self.gallery = gallery
        runtime = pipeline.embedder.sessions
        names = pipeline.embedder.bundle.contract.name, pipeline.detector.bundle.contract.name
        self.runtime.labels(runtime.device, runtime.provider, *names).set(1)

    def collect(self) -> bytes:
        """The metrics in Prometheus's text format; retries while a starting worker's file is incomplete."""
        for _ in range(PATIENCE):
            with suppress(struct.error):
                return self.collect_now()
            time.sleep(0.01)
        return self.collect_now()

    def collect_now(self) -> bytes:
        """The metrics in Prometheus's text format; raises struct.error if a worker's file is incomplete."""
        shown = self.prometheus.CollectorRegistry()
        if os.environ.get(SHARED):
            from prometheus_client.multiprocess import MultiProcessCollector

            MultiProcessCollector(shown)
        else:
            shown.register(self.registry)
        shown.register(GalleryCollector(self.gallery))
        return self.prometheus.generate_latest(shown)


def remove_leftovers() -> None:
    """Delete the folders of supervisors that were killed: no process has the id in their name any more."""
    for folder in Path(tempfile.gettempdir()).glob(f"{METRICS_FOLDER}*"):
        process = folder.name.removeprefix(METRICS_FOLDER).partition("-")[0]
        if process.isdecimal() and not Path(f"/proc/{process}").exists():
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def counting_together() -> Iterator[Callable[[int], None]]:
    """Make a temporary folder through which workers forked inside the block add up their metrics.

    Yields a function to call with the process id of a worker that has ended.
    """
    remove_leftovers()
    with tempfile.TemporaryDirectory(prefix=f"{METRICS_FOLDER}{os.getpid()}-") as shared:
        os.environ[SHARED] = shared

        def forget(process: int) -> None:
            from prometheus_client.multiprocess import mark_process_dead

            mark_process_dead(process, shared)  # keeps its counters, drops its live gauges

        yield forget


class GalleryCollector:
    """Gauges of the gallery's sizes, measured at every scrape."""

    def __init__(self, gallery: Gallery | None) -> None:
        self.gallery = gallery

    def collect(self) -> Iterable[Any]:
        """Yield the gauges, or none before the gallery is loaded."""
        from prometheus_client.core import GaugeMetricFamily

        if self.gallery is None:
            return
        try:
            size = measure_size(self.gallery)
        except StoreUnavailable:  # what the server counts itself is shown all the same
            return
        figures = {
            "collections": ("Collections.", size.collections),
            "people": ("Enrolled people.", size.people),
            "faces": ("Enrolled faces.", size.faces),
            "lag": ("Changes that the index furthest behind has yet to follow.", size.lag),
        }
        for name, (text, value) in figures.items():
            yield GaugeMetricFamily(f"sameface_gallery_{name}", text, value=value)
