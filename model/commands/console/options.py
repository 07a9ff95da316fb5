"""The options that several commands share, and what they open."""

from contextlib import closing
from pathlib import Path
from typing import Annotated, Literal

import typer

from sameface.in_process import Faces, open_faces
from sameface.model.data_folder import DataFolder
from sameface.model.pipeline import Pipeline, PipelineOptions, open_pipeline
from sameface.model.runtime.precision.choice import Precision

PhotoFile = Annotated[Path, typer.Argument(help="A JPEG, PNG, WebP, BMP, GIF, TIFF, AVIF or HEIC file.")]
Data = Annotated[Path, typer.Option("--data", envvar="SAMEFACE_DATA", help="Folder for models and all else.")]
Database = Annotated[
    str | None,
    typer.Option(
        "--database",
        envvar="SAMEFACE_DATABASE",
        help="URL of a PostgreSQL database for the gallery; SQLite in the data folder.",
        show_envvar=True,
    ),
]
Index = Annotated[
    Literal["faiss", "milvus"],
    typer.Option("--index", envvar="SAMEFACE_INDEX", help="What searches: FAISS in memory, or Milvus."),
]
MilvusUri = Annotated[
    str | None,
    typer.Option("--milvus-uri", envvar="SAMEFACE_MILVUS_URI", help="Address of Milvus.", show_envvar=True),
]
MilvusToken = Annotated[
    str | None,
    typer.Option(
        "--milvus-token", envvar="SAMEFACE_MILVUS_TOKEN", help="Milvus's USER:PASSWORD, or its API key."
    ),
]
Recognizer = Annotated[
    Path | None,
    typer.Option(
        "--recognizer", envvar="SAMEFACE_RECOGNIZER", help="A recogniser's bundle, by name or folder."
    ),
]
Detector = Annotated[
    Path | None,
    typer.Option("--detector", envvar="SAMEFACE_DETECTOR", help="A detector's bundle, by name or folder."),
]
Device = Annotated[
    Literal["auto", "cpu", "gpu"], typer.Option("--device", envvar="SAMEFACE_DEVICE", help="What to run on.")
]
InPrecision = Annotated[
    Literal["auto", "exact", "bf16"],
    typer.Option("--precision", envvar="SAMEFACE_PRECISION", help="What recognisers compute in."),
]
PrecisionFaces = Annotated[
    Path | None,
    typer.Option(
        "--precision-faces",
        envvar="SAMEFACE_PRECISION_FACES",
        show_envvar=False,  # too long for the column of a narrow terminal
        help="Folder of aligned crops that prove a lower precision; drawn faces.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
InCollection = Annotated[str, typer.Option("--collection", help="The collection's name.")]
CollectionName = Annotated[str, typer.Argument(help="The collection's name.")]
BundleName = Annotated[Path, typer.Argument(help="A recogniser's bundle, by name or folder.")]
Aligned = Annotated[bool, typer.Option("--aligned", help="The pictures are aligned crops already.")]
Groups = Annotated[Path | None, typer.Option(help="A CSV of identity,group: error rates for each group.")]


def by_name() -> None:
    """The callback of a Typer with a single command, which is called by its name all the same."""


def faces_in(
    folder: DataFolder,
    recognizer: Path | None,
    detector: Path | None,
    device: str,
    precision: str = "auto",
    precision_faces: Path | None = None,
) -> Faces:
    """The public API on a data folder, to be closed by the command."""
    return open_faces(
        folder.root,
        database=folder.database,
        milvus_uri=folder.milvus.uri if folder.milvus else None,
        milvus_token=folder.milvus.token if folder.milvus else None,
        recognizer=recognizer,
        detector=detector,
        device=device,  # type: ignore[arg-type]
        precision=precision,  # type: ignore[arg-type]
        precision_faces=precision_faces,
    )


def pipeline_for(
    folder: DataFolder,
    recognizer: Path | None,
    detector: Path | None,
    device: str,
    precision: str,
    precision_faces: Path | None,
) -> closing[Pipeline]:
    """The pipeline alone, for commands that measure on many photos; closed at the end of the block."""
    proved_by = precision_faces.expanduser() if precision_faces else None
    options = PipelineOptions.in_folder(
        folder, recognizer, detector, device=device, precision=Precision(precision, proved_by)
    )
    return closing(open_pipeline(options))
