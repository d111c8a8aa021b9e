"""Tables as parquet files, on Dagster's own `UPathIOManager`."""

from __future__ import annotations

import difflib
import errno
import io
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin
from uuid import uuid4

import dagster as dg
import polars as pl
from fsspec.implementations.local import LocalFileSystem  # type: ignore[import-untyped]
from pydantic import Field, field_validator
from upath import UPath

from dagster_dataframely.core.verdict.staged import Compression, StagedParquet, StagingPlace
from dagster_dataframely.errors import InvalidReturnError, InvalidSettingError

COMPRESSIONS: tuple[Compression, ...] = get_args(Compression)


class ParquetIOManager(dg.ConfigurableIOManagerFactory["ParquetFileIOManager"]):
    """An IO manager that stores each table, or each partition of one, as a parquet file.

    The asset `sales/orders` is stored in `<base_dir>/sales/orders.parquet`, a partition of it in
    `<base_dir>/sales/orders/2026-01-01.parquet`. That is the layout of `dagster-polars`, and files
    that it wrote can be read.

    The annotation of an input decides how it is loaded.

    | annotation | what the function gets |
    | --- | --- |
    | `pl.DataFrame`, `dy.DataFrame[...]`, none | the table; of several partitions, all their rows |
    | `pl.LazyFrame`, `dy.LazyFrame[...]` | the same as a scan of the files |
    | `dict[str, ...]` of one of those | a frame a partition, by partition key |
    | one of those, or `None` | the same, or `None` where the file does not exist |

    A `pl.LazyFrame` is written by a streaming sink, without being collected. Whatever is written
    goes to a temporary file in the same directory first, which then takes the place of the old one,
    so that a run that dies half-way leaves the table as it was. `None` writes nothing.

    `base_dir` may be anything that `universal-pathlib` reaches, such as `s3://bucket/tables`. A
    file that is not on a local disk is fetched whole when it is loaded, also for a lazy input.

    Examples:
        >>> import tempfile
        >>> import dagster as dg
        >>> import polars as pl
        >>> import dagster_dataframely as dd
        >>> @dg.asset
        ... def orders() -> pl.DataFrame:
        ...     return pl.DataFrame({"amount": [10.0, 2.5]})
        >>> @dg.asset
        ... def revenue(orders: pl.LazyFrame) -> pl.LazyFrame:
        ...     return orders.select(pl.col("amount").sum())
        >>> storage = dd.ParquetIOManager(base_dir=tempfile.mkdtemp())
        >>> result = dg.materialize([orders, revenue], resources={"io_manager": storage})
        >>> result.asset_value("revenue").collect().item()
        12.5
    """

    base_dir: str | None = Field(
        default=None,
        description="The directory of the tables; by default, the storage directory of Dagster.",
    )
    compression: str = Field(
        default="zstd",
        description=f"How the files are compressed: {', '.join(COMPRESSIONS)}.",
    )
    storage_options: dict[str, Any] | None = Field(
        default=None,
        description="What `universal-pathlib` needs to reach `base_dir`, such as credentials.",
    )

    @field_validator("compression", mode="before")
    @classmethod
    def _check_compression(cls, value: object) -> str:
        # A variable is read when a run starts, and its value comes by here again.
        return value if isinstance(value, dg.EnvVar) else _compression(value)

    def create_io_manager(self, context: dg.InitResourceContext) -> ParquetFileIOManager:
        """Return the IO manager of one run."""
        base_dir = self.base_dir
        if base_dir is None:
            assert context.instance is not None  # Only its type says that it may be.
            base_dir = context.instance.storage_directory()
        return ParquetFileIOManager(
            UPath(base_dir, **_from_environment(self.storage_options or {})),
            compression=_compression(self.compression),
        )


class ParquetFileIOManager(dg.UPathIOManager):
    """The IO manager that `ParquetIOManager` creates for a run.

    Args:
        base_path: The directory of the tables.
        compression: How the files are compressed.
    """

    extension = ".parquet"

    def __init__(self, base_path: UPath, *, compression: Compression = "zstd") -> None:
        super().__init__(base_path=base_path)
        self.compression: Compression = compression
        self._base_path = base_path

    def staging_place(self) -> StagingPlace:
        """Return the directory of the tables where that is a local one: a rename makes a table there."""
        return StagingPlace(_local(self._base_path), self.compression)

    def dump_to_path(
        self, context: dg.OutputContext, obj: pl.DataFrame | pl.LazyFrame | None, path: UPath
    ) -> None:
        """Write a frame in place of the file, or leave the file alone for `None`."""
        if obj is None:
            context.log.info(f"There is no frame to write, so {path} was left as it is.")
            return
        if not isinstance(obj, (pl.DataFrame, pl.LazyFrame)):
            raise InvalidReturnError(
                f"ParquetIOManager stores a Polars DataFrame or LazyFrame, and {_described(context)} "
                f"is a {_class_name(obj)}. Return a frame, or set `io_manager_key` to an IO manager "
                "that stores other values."
            )
        with _in_place_of(path) as temporary:
            _write(obj, temporary, self.compression)
            size = temporary.stat().st_size
            rows = _row_count(obj, temporary)
        metadata: dict[str, Any] = {"size_bytes": size}
        if rows is not None:
            scope = "partition_row_count" if context.has_asset_partitions else "row_count"
            metadata[f"dagster/{scope}"] = rows
        context.add_output_metadata(metadata)

    def load_from_path(
        self, context: dg.InputContext, path: UPath
    ) -> pl.DataFrame | pl.LazyFrame | None:
        """Read a file, or scan it where the input is annotated with a lazy frame."""
        wanted = _wanted(context.dagster_type.typing_type)
        # A scan would find out only when it is collected, far from the input that asked for it.
        if not self.path_exists(path):
            if wanted.optional:
                return None
            raise FileNotFoundError(
                f"ParquetIOManager finds no file of {_described(context)} at {path}. Materialize "
                "it first, or annotate the input with `| None` to get None in its place."
            )
        local = _local(path)
        source = io.BytesIO(path.read_bytes()) if local is None else local
        # A partition key may hold `*` or `=`, which are no pattern and no column here.
        frame = pl.scan_parquet(source, glob=False, hive_partitioning=False)
        return frame if wanted.lazy else frame.collect()

    def load_partitions(
        self, context: dg.InputContext
    ) -> pl.DataFrame | pl.LazyFrame | dict[str, pl.DataFrame | pl.LazyFrame] | None:
        """Read the partitions of an input: into one frame, or a frame each where it is a `dict`."""
        loaded = super().load_partitions(context)
        keys = context.asset_partition_keys
        # Of one partition Dagster's loader returns the frame itself, and None where it is missing.
        frames = {keys[0]: loaded} if len(keys) == 1 else loaded
        frames = {key: frame for key, frame in frames.items() if frame is not None}
        if _wanted(context.dagster_type.typing_type).by_partition:
            return frames
        if len(frames) < 2:
            return next(iter(frames.values()), None)
        return _all_rows(context, frames)

    def make_safe_partition_path(self, base_path: UPath, partition: str) -> UPath:
        """Return the path of a partition, below the asset's directory whatever its key is."""
        parts = ("%2E%2E" if part == ".." else part for part in partition.split("/"))
        return super().make_safe_partition_path(base_path, "/".join(parts))


class _Wanted(NamedTuple):
    lazy: bool
    by_partition: bool
    optional: bool


def _wanted(annotation: Any) -> _Wanted:
    """Read what an input's annotation asks for; what is no lazy frame is read eagerly."""
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        members = [member for member in get_args(annotation) if member is not NoneType]
        optional = len(members) < len(get_args(annotation))
        wanted = _wanted(members[0] if len(members) == 1 else Any)
        return wanted._replace(optional=optional)
    named = origin or annotation
    if not isinstance(named, type):
        return _Wanted(lazy=False, by_partition=False, optional=False)
    if issubclass(named, Mapping):
        value = _wanted((*get_args(annotation), Any, Any)[1])
        return value._replace(by_partition=True)
    return _Wanted(lazy=issubclass(named, pl.LazyFrame), by_partition=False, optional=False)


def _all_rows(context: dg.InputContext, frames: Mapping[str, Any]) -> pl.DataFrame | pl.LazyFrame:
    """Put partitions under one another, in the order of the partitions."""
    (first, *others) = frames
    expected = frames[first].collect_schema()
    for other in others:
        schema = frames[other].collect_schema()
        if list(schema.items()) != list(expected.items()):
            raise pl.exceptions.SchemaError(
                f"Partitions '{first}' and '{other}' of {_described(context)} cannot be one frame: "
                f"one has {_columns(expected)}, the other {_columns(schema)}. Annotate the input "
                "with `dict[str, pl.DataFrame]` to get a frame a partition."
            )
    rows: pl.DataFrame | pl.LazyFrame = pl.concat(frames.values())
    return rows


def _columns(schema: Mapping[str, Any]) -> str:
    return ", ".join(f"'{name}' ({dtype})" for name, dtype in schema.items()) or "no columns"


def _described(context: dg.InputContext | dg.OutputContext) -> str:
    if context.has_asset_key:
        return f"asset '{context.asset_key.to_user_string()}'"
    output = context.upstream_output if isinstance(context, dg.InputContext) else context
    return f"output '{output.name}'" if output is not None else f"input '{context.name}'"


def _class_name(value: object) -> str:
    cls = type(value)
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _from_environment(options: Mapping[str, Any]) -> dict[str, Any]:
    """Read the variables that `dg.EnvVar` names, which Dagster does for whole settings only."""
    read: dict[str, Any] = {}
    for option, value in options.items():
        if not isinstance(value, Mapping):
            read[option] = value
        elif set(value) == {"env"}:
            read[option] = os.environ.get(value["env"])
            if read[option] is None:
                raise InvalidSettingError(
                    f"The `storage_options` of ParquetIOManager take '{option}' from the environment "
                    f"variable {value['env']}, which is not set."
                )
        else:
            read[option] = _from_environment(value)
    return read


def _compression(value: object) -> Compression:
    for compression in COMPRESSIONS:
        if value == compression:
            return compression
    near = difflib.get_close_matches(str(value).lower(), COMPRESSIONS, n=1)
    meant = f" Did you mean '{near[0]}'?" if near else ""
    allowed = ", ".join(f"'{compression}'" for compression in COMPRESSIONS)
    raise InvalidSettingError(
        f"The `compression` of ParquetIOManager is {value!r}. Allowed are {allowed}.{meant}"
    )


@contextmanager
def _in_place_of(path: UPath) -> Iterator[UPath]:
    """Give a temporary path next to `path` that takes its place when all went well."""
    temporary = path.with_name(f".{uuid4().hex}.parquet.tmp")
    try:
        yield temporary
        written, target = _local(temporary), _local(path)
        if written is None or target is None:
            path.fs.mv(temporary.path, path.path)
        else:
            written.replace(target)
    except BaseException:
        if temporary.exists():
            temporary.unlink()
        raise


def _write(frame: pl.DataFrame | pl.LazyFrame, path: UPath, compression: Compression) -> None:
    local = _local(path)
    staged = StagedParquet.of(frame)
    if staged is not None:
        if local is None or not _renamed(staged.path, local):
            with staged.path.open("rb") as source, path.open("wb") as target:
                shutil.copyfileobj(source, target)
    elif local is None:
        with path.open("wb") as target:
            _write_parquet(frame, target, compression)
    else:
        _write_parquet(frame, local, compression)


def _write_parquet(
    frame: pl.DataFrame | pl.LazyFrame, target: Any, compression: Compression
) -> None:
    if isinstance(frame, pl.LazyFrame):
        frame.sink_parquet(target, compression=compression)
    else:
        frame.write_parquet(target, compression=compression)


def _renamed(source: Path, target: Path) -> bool:
    """Rename a file, unless it lies on another file system."""
    try:
        source.replace(target)
    except OSError as error:
        if error.errno == errno.EXDEV:
            return False
        raise
    return True


def _row_count(frame: pl.DataFrame | pl.LazyFrame, path: UPath) -> int | None:
    """Count the rows where that takes no pass over them: a local file says it in its footer."""
    if isinstance(frame, pl.DataFrame):
        return frame.height
    local = _local(path)
    if local is None:
        return None
    return int(pl.scan_parquet(local, glob=False).select(pl.len()).collect().item())


def _local(path: UPath) -> Path | None:
    """Return the path as one of the local file system, or None where it is elsewhere."""
    return Path(path.path) if isinstance(path.fs, LocalFileSystem) else None
