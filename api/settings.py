"""The server's settings: each a flag of `sameface serve`, a SAMEFACE_ variable, or a key of a TOML file."""

import ipaddress
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from sameface.api.config_file import ConfigFile
from sameface.api.parse_settings import parse_keys, parse_networks, split_list
from sameface.api.secret_files import SecretFiles
from sameface.model.data_folder import DEFAULT_DATA, DataFolder, choose_milvus
from sameface.model.decision.thresholds import TARGET_FMR, TARGET_FPIR
from sameface.model.photo.detect import DetectorOptions
from sameface.model.photo.image import ImageLimits
from sameface.model.pipeline import PipelineOptions
from sameface.model.runtime.device import available_cores
from sameface.model.runtime.precision.choice import Precision
from sameface.model.store.access.api_key import ApiKey, KeyLimits
from sameface.model.upkeep.scheduled_backups import BackupPlan

PREFIX = "SAMEFACE_"
PILLOWS_OWN_LIMIT = 178_000_000

PageAccess = Literal["public", "key", "off"]
ACCESS = "`public`, for callers with a `key` where the server has keys, or `off`"


class Settings(BaseSettings):
    """The server's settings, read once at start and passed on."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, frozen=True)

    config: Path | None = Field(
        None, description="TOML file with settings by these names; flags and environment win over it."
    )
    host: str = Field("127.0.0.1", description="Address to listen on; off loopback only with API keys.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on.")
    unix_socket: Path | None = Field(
        None,
        description="File of a Unix socket to listen on instead of a port; its owner and group may call.",
    )
    tls_certificate: Path | None = Field(
        None, description="PEM file of a certificate with its chain, for TLS; SIGHUP loads it again."
    )
    tls_key: Path | None = Field(None, description="PEM file of its key, without a password.")
    root_path: str = Field(
        "",
        pattern=r"^((/[A-Za-z0-9._~-]+)+)?$",
        description="Prefix before every path, such as `/faces`, under which a proxy shows the server.",
    )
    trusted_proxies: Annotated[
        tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...], NoDecode, BeforeValidator(parse_networks)
    ] = Field(
        (),
        description="Addresses or networks of proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are"
        " believed, separated by commas; a Unix socket needs none.",
    )
    listen_without_keys: bool = Field(
        False,
        description="Listen off loopback although there are no API keys: anyone who reaches it may use it.",
    )
    api_keys: Annotated[tuple[ApiKey, ...], NoDecode, BeforeValidator(parse_keys)] = Field(
        (),
        description="Hashed keys as `sameface keys create --environment` prints them, separated by commas.",
    )
    cors_origins: Annotated[tuple[str, ...], NoDecode, BeforeValidator(split_list)] = Field(
        (), description="Origins whose pages may call the API from a browser, separated by commas."
    )
    allowed_hosts: Annotated[tuple[str, ...], NoDecode, BeforeValidator(split_list)] = Field(
        (),
        description="Names besides localhost that a server without keys is called by, separated by commas;"
        " off loopback, any name is taken unless some are set.",
    )
    data: Path = Field(DEFAULT_DATA, description="Folder for models and all else that is kept.")
    database: Annotated[str | None, Field(repr=False)] = Field(
        None, description="URL of a PostgreSQL database for the gallery; SQLite in the data folder."
    )
    role: Literal["all", "search", "write"] = Field(
        "all",
        description="What this server of a shared gallery does: `search` takes no changes, `write` searches"
        " nothing and keeps no index.",
    )
    index: Literal["faiss", "milvus"] = Field(
        "faiss", description="What searches: `faiss` in the memory of each process, or the server `milvus`."
    )
    milvus_uri: Annotated[str | None, Field(repr=False)] = Field(
        None, description="Address of Milvus, such as http://milvus:19530, for the index `milvus`."
    )
    milvus_token: Annotated[str | None, Field(repr=False)] = Field(
        None, description="Milvus's USER:PASSWORD, or its API key."
    )
    recognizer: Path | None = Field(
        None, description="The recogniser's bundle, by its name in the data folder or by its folder; SFace."
    )
    detector: Path | None = Field(
        None, description="The detector's bundle, by its name in the data folder or by its folder; YuNet."
    )
    device: Literal["auto", "cpu", "gpu"] = Field(
        "auto",
        description="`gpu` refuses to start without a working one; `auto` takes what there is and says so.",
    )
    precision: Literal["auto", "exact", "bf16"] = Field(
        "auto",
        description="What recognisers compute in: `exact` float32, `bf16` or refuse to start, `auto` what is"
        " fastest and embeds faces the same.",
    )
    precision_faces: Path | None = Field(
        None, description="Folder of aligned crops that prove a lower precision; drawn faces."
    )
    workers: int = Field(1, ge=1, le=64, description="Server processes; they share the port and the gallery.")
    threads: int | None = Field(
        None, ge=1, description="Photos that a process works on at the same time; cores / workers + 1."
    )
    queue: int = Field(32, ge=1, description="Photos that may wait; beyond, requests are answered with 429.")
    request_seconds: float = Field(30.0, gt=0, description="Time limit of a request, its upload included.")
    drain_seconds: float = Field(
        3.0,
        ge=0,
        description="After SIGTERM, seconds in which /health/ready says 503 and requests are still taken.",
    )
    max_connections: int = Field(
        1000, ge=1, description="Connections at one time; fewer where the process has fewer file descriptors."
    )
    max_connections_per_address: int = Field(
        100,
        ge=1,
        description="Connections of one address at one time; no limit for loopback and trusted proxies.",
    )
    requests_per_minute: int | None = Field(None, ge=1, description="Requests a minute of all callers.")
    photos_per_minute: int | None = Field(None, ge=1, description="Photos a minute of all callers.")
    concurrent_requests: int | None = Field(None, ge=1, description="Requests at once of all callers.")
    gallery_faces: int | None = Field(None, ge=1, description="Faces of all collections together.")
    gallery_collections: int | None = Field(None, ge=1, description="Collections in all.")
    max_image_bytes: int = Field(10_000_000, ge=1, description="Bytes of one image.")
    max_image_pixels: int = Field(
        50_000_000,
        ge=1,
        le=PILLOWS_OWN_LIMIT,
        description="Pixels of one image, checked before it is decoded.",
    )
    max_decoded_pixels: int = Field(
        60_000_000,
        ge=1,
        description="Pixels of all photos that a process holds decoded at one time; others wait.",
    )
    max_decode_seconds: float = Field(
        10.0, gt=0, description="Seconds that an image may take to decode, which is then stopped."
    )
    max_upload_bytes: int = Field(
        500_000_000, ge=1_000_000, description="Bytes of all requests that are being read at one time."
    )
    max_unread_bytes: int = Field(
        1_000_000_000,
        ge=100_000,
        description="Bytes of a batch's answers that are kept for a client that sends everything first.",
    )
    max_images: int = Field(16, ge=2, description="Images of one request.")
    max_faces: int = Field(
        64, ge=1, description="Faces of one photo that are answered, most prominent first."
    )
    min_face_pixels: float = Field(20.0, ge=0, description="Smallest face that is compared.")
    min_face_score: float = Field(
        0.7, ge=0, le=1, description="Detector score from which something is a face."
    )
    detect_pixels: int = Field(
        640,
        ge=32,
        le=4096,
        description="Longer side at which faces are looked for; more finds smaller ones, slower.",
    )
    compatible: Annotated[
        tuple[Literal["compreface", "deepstack", "rekognition"], ...], NoDecode, BeforeValidator(split_list)
    ] = Field(
        (),
        description="Other servers whose clients are served too: `compreface`, `deepstack`, `rekognition`,"
        " separated by commas.",
    )
    compreface_static_images: bool = Field(
        False, description="Show images at CompreFace's address with the key in its path, where logs see it."
    )
    target_fmr: float = Field(
        TARGET_FMR, gt=0, lt=1, description="False match rate of verify where a request names none."
    )
    target_fpir: float = Field(
        TARGET_FPIR, gt=0, lt=1, description="False positive rate of identify where a request names none."
    )
    calibration: str | None = Field(
        None,
        description="The recogniser's calibration to decide by; the one that was chosen, or that its bundle"
        " names.",
    )
    backup_folder: Path | None = Field(
        None,
        description="Folder for backups of the gallery, which the server then makes; else it makes none.",
    )
    backup_hours: float = Field(24.0, gt=0, description="Hours from one backup to the next.")
    backups_kept: int = Field(7, ge=1, description="Backups that are kept; older ones are deleted.")
    audit_days: int = Field(
        365, ge=0, le=36_500, description="Days that the audit is kept; 0 records no decisions."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="How much is logged.")
    log_format: Literal["text", "json"] = Field(
        "text", description="Log lines as `text`, or as `json`: one object per line."
    )
    metrics: PageAccess = Field("public", description=f"/metrics: {ACCESS}.")
    docs: PageAccess = Field("public", description=f"/docs: {ACCESS}.")
    openapi: PageAccess = Field("public", description=f"/openapi.json: {ACCESS}.")

    @classmethod
    def settings_customise_sources(  # type: ignore[override]  # of no use here: .env files, secrets folders
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        **_: Any,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Where settings come from, the first wins: arguments, environment, files of secrets, the file that
        `config` names."""
        return init_settings, env_settings, SecretFiles(settings_cls), ConfigFile(settings_cls)

    @property
    def folder(self) -> DataFolder:
        """The data folder and the paths inside it."""
        milvus = choose_milvus(self.index, self.milvus_uri, self.milvus_token)
        return DataFolder(self.data, self.database, milvus)

    @property
    def backup_plan(self) -> BackupPlan | None:
        """The backups that the server makes; None for none."""
        if self.backup_folder is None:
            return None
        return BackupPlan(self.backup_folder.expanduser(), self.backup_hours, self.backups_kept)

    @property
    def limits(self) -> KeyLimits:
        """The limits of all callers together, as those of a key are kept."""
        return KeyLimits(
            requests_per_minute=self.requests_per_minute,
            photos_per_minute=self.photos_per_minute,
            concurrent=self.concurrent_requests,
        )

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the server: on a loopback address, or by a Unix socket."""
        if self.unix_socket:
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def trusts(self, client: tuple[str, int] | None) -> bool:
        """Whether `client` is a trusted proxy; None, a caller by the Unix socket, always is."""
        if client is None:
            return self.unix_socket is not None
        try:
            address = ipaddress.ip_address(client[0])
        except ValueError:
            return False
        return any(address in network for network in self.trusted_proxies)

    def pipeline_options(self) -> PipelineOptions:
        """The settings that the pipeline is opened with."""
        return PipelineOptions.in_folder(
            self.folder,
            self.recognizer,
            self.detector,
            device=self.device,
            precision=Precision(
                self.precision, self.precision_faces.expanduser() if self.precision_faces else None
            ),
            threads=self.threads or available_cores() // self.workers + 1,
            queue=self.queue,
            limits=ImageLimits(
                self.max_image_bytes,
                self.max_image_pixels,
                self.max_decoded_pixels,
                self.max_decode_seconds,
            ),
            detection=DetectorOptions(self.detect_pixels, self.min_face_score),
            max_faces=self.max_faces,
            min_face_pixels=self.min_face_pixels,
            calibration=self.calibration,
            target_fmr=self.target_fmr,
            target_fpir=self.target_fpir,
        )
