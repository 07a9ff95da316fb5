"""Puts the server together: settings in, an ASGI application out."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from sameface.api.access.admission import Admission, Authenticate, Door
from sameface.api.access.caller import ADMITTED, ANY_KEY, READ, authenticate
from sameface.api.body.read_body import UploadBudget
from sameface.api.compreface.routes.images import static_images
from sameface.api.dependencies import KNOWN_OPTIONS
from sameface.api.errors import add_error_handlers
from sameface.api.families import FAMILIES
from sameface.api.metrics import Metrics
from sameface.api.middleware.forwarded import Forwarded
from sameface.api.middleware.host_check import HostCheck
from sameface.api.middleware.request_meter import RequestMeter
from sameface.api.middleware.time_limit import TimeLimit
from sameface.api.openapi.contract import name_operation, publish_exactly
from sameface.api.routes import (
    audit,
    batch,
    calibrations,
    collections,
    contract,
    docs,
    faces,
    health,
    identify,
    keys,
    metrics,
    models,
    people,
    verify,
)
from sameface.api.settings import Settings
from sameface.api.store_check import StoreCheck
from sameface.api.traces import TracedMetrics, open_traces
from sameface.model.access.audit.decisions import Decisions
from sameface.model.access.key_ring import KeyRing
from sameface.model.access.limits.limits import Limits
from sameface.model.access.limits.quotas import list_quotas_of_all
from sameface.model.errors import SamefaceError, StoreUnavailable
from sameface.model.gallery.gallery import open_gallery
from sameface.model.pipeline import open_pipeline
from sameface.model.runtime.memory import return_freed_memory
from sameface.model.upkeep.scheduled_backups import ScheduledBackups

log = logging.getLogger("sameface")

TIDY_SECONDS = 10.0
SAVE_USES_SECONDS = 10.0
WAIT_SECONDS = 2.0  # between two looks for a database that is away


def create_app(settings: Settings, on_loaded: Callable[[FastAPI], None] | None = None) -> FastAPI:
    """The ASGI application: /health/live answers at once, /health/ready once the networks are warm.

    Loading sets `app.state.pipeline`, or `app.state.failure` if it fails, and then calls `on_loaded`.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        loading = asyncio.create_task(load_pipeline(app, on_loaded))
        chores = [asyncio.create_task(chore) for chore in (return_memory_now_and_then(), save_uses(ring))]
        yield
        app.state.stopping = True
        for chore in chores:
            chore.cancel()
        await loading
        await ring.save_uses()
        for part in (app.state.pipeline, app.state.backups, app.state.gallery, ring, limits):
            if part:
                part.close()
        if traces:
            await asyncio.to_thread(traces.close)

    app = FastAPI(
        title="sameface",
        description="Is this the same face? Verify, identify, detect and embed faces over HTTP.",
        version=version("sameface"),
        generate_unique_id_function=name_operation,
        lifespan=lifespan,
        openapi_url=None,  # it is a route of ours, as /docs is: both may be behind a key
        docs_url=None,
        redoc_url=None,
        swagger_ui_oauth2_redirect_url=None,
        redirect_slashes=False,  # a redirect may turn the address of a person into that of the collection
    )
    app.state.settings = settings
    traces = open_traces()
    app.state.metrics = TracedMetrics(traces) if traces else Metrics()
    limits = app.state.limits = Limits(settings.folder.limits, settings.limits)
    ring = app.state.keys = KeyRing(settings.api_keys, settings.folder.gallery)
    app.state.pipeline = app.state.gallery = app.state.backups = app.state.failure = None
    app.state.stopping = False
    app.state.store_check = StoreCheck()
    app.state.uploads = UploadBudget(settings.max_upload_bytes)
    add_routes(app, settings)
    app.state.dialects = {}
    guards = add_families(app, settings)
    add_error_handlers(app)
    publish_exactly(app)
    # The middleware added last is the outermost: a request meets it first.
    quotas = list_quotas_of_all(settings.gallery_faces, settings.gallery_collections)
    door = app.state.door = Door(ring, limits, quotas)
    app.add_middleware(Admission, door=door, guards=guards)
    app.add_middleware(TimeLimit, seconds=settings.request_seconds)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=["X-Request-ID", "Retry-After", "RateLimit", "RateLimit-Policy", "traceparent"],
        )
    app.add_middleware(HostCheck, settings=settings, ring=ring)
    app.add_middleware(
        RequestMeter, metrics=app.state.metrics, seconds=settings.request_seconds, traces=traces
    )
    app.add_middleware(Forwarded, settings=settings)
    return app


def add_routes(app: FastAPI, settings: Settings) -> None:
    """Add the routes of /v1, which refuse unknown query parameters, and those of health, metrics and docs."""
    for noun in (verify, faces, collections, batch, people, identify, models, calibrations, keys, audit):
        app.include_router(noun.router, dependencies=[ADMITTED, KNOWN_OPTIONS])
    app.include_router(health.router)
    for page, access, key in (
        (metrics, settings.metrics, ANY_KEY),
        (docs, settings.docs, READ),
        (contract, settings.openapi, READ),
    ):
        if access != "off":
            app.include_router(page.router, dependencies=[key] if access == "key" else [])


def add_families(app: FastAPI, settings: Settings) -> dict[str, Authenticate | None]:
    """Add the routes of the families in `settings.compatible`; returns all guards by prefix of paths."""
    guards: dict[str, Authenticate | None] = {}
    for name in settings.compatible:
        family = FAMILIES[name]
        app.include_router(family.router)
        app.state.dialects[family.prefix] = family.write_error
        guards[family.prefix] = family.authenticate
    if "compreface" in settings.compatible and settings.compreface_static_images:
        app.include_router(static_images)
    return guards | {"/v1/": authenticate}


async def return_memory_now_and_then() -> None:
    """Return freed memory to the system: requests of all sizes leave the allocator's arenas full of holes."""
    while True:
        await asyncio.sleep(TIDY_SECONDS)
        await asyncio.to_thread(return_freed_memory)


async def save_uses(ring: KeyRing) -> None:
    """Write now and then when keys were last used."""
    while True:
        await asyncio.sleep(SAVE_USES_SECONDS)
        await ring.save_uses()


async def load_pipeline(app: FastAPI, on_loaded: Callable[[FastAPI], None] | None) -> None:
    """Load the networks, unless they are, in a thread beside the event loop, and call `on_loaded`."""
    if app.state.pipeline is None:
        await asyncio.to_thread(load_parts, app)
    if on_loaded:
        on_loaded(app)


def load_parts(app: FastAPI) -> None:
    """Load the networks and the gallery; `app.state` then has them, or the failure that kept them away.

    A database that is away is waited for: machines that start together come up in any order.
    """
    try:
        while not try_to_open(app):
            time.sleep(WAIT_SECONDS)
        sessions = app.state.pipeline.embedder.sessions
        log.info("ready on device %s (%s)", sessions.device, sessions.provider)
    except Exception as error:  # without networks there is nothing to serve, whatever the reason
        app.state.failure = error
        log.error("cannot serve: %s", error, exc_info=not isinstance(error, SamefaceError))


def try_to_open(app: FastAPI) -> bool:
    """Open the parts; False if the gallery's database is away and the server is not being stopped."""
    try:
        open_parts(app)
    except StoreUnavailable as reason:
        if app.state.stopping:
            raise
        log.warning("waiting: %s", reason)
        return False
    return True


def open_parts(app: FastAPI) -> None:
    """Open the pipeline and the gallery for its recogniser, and put both into `app.state`."""
    settings: Settings = app.state.settings
    app.state.limits.open()
    app.state.keys.open()  # first: until then nobody is let in
    pipeline = open_pipeline(settings.pipeline_options(), app.state.metrics)
    gallery = None
    try:
        pipeline.thresholds.refuse_own_rate()
        gallery = open_gallery(settings.folder, pipeline, settings.role)
        gallery.load()
        if settings.database:
            app.state.limits.share(gallery.store.leases)
        gallery.decisions = Decisions(gallery.store, settings.audit_days, app.state.metrics)
    except BaseException:
        for part in (pipeline, gallery):
            if part:
                part.close()
        raise
    app.state.metrics.ready(pipeline, gallery)
    if settings.backup_plan:
        app.state.backups = ScheduledBackups(gallery.store, settings.backup_plan, app.state.metrics)
    app.state.gallery = gallery
    app.state.pipeline = pipeline  # last: from now on the server is ready
