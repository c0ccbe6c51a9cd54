"""The trace: what every run writes and what the pipeline reads. docs/trace.md has the format.

Importing this package does not load pyarrow: that happens when a trace on disk is first written or read.
"""

from inga.trace.aliases import ALIASES, rename
from inga.trace.export import Exported, steps, write_jsonl
from inga.trace.manifest import Manifest, ProcessFile, mark_crashed
from inga.trace.memory import MemoryTrace
from inga.trace.perfetto import write_perfetto
from inga.trace.reader import (
    Segment,
    local_path,
    read_manifest,
    read_processes,
    read_segment,
    rows,
    segments,
    table,
)
from inga.trace.schema import COLUMNS, Row, pack_deps, pack_dst, schema, unpack_deps, unpack_dst
from inga.trace.shiviz import write_shiviz
from inga.trace.stamps import Stamps
from inga.trace.writer import TraceWriter

__all__ = [
    # writing
    "TraceWriter",
    "MemoryTrace",
    "Manifest",
    "ProcessFile",
    "mark_crashed",
    # reading
    "read_manifest",
    "read_processes",
    "segments",
    "Segment",
    "rows",
    "table",
    "read_segment",
    "local_path",
    # the format
    "Row",
    "COLUMNS",
    "schema",
    "pack_deps",
    "unpack_deps",
    "pack_dst",
    "unpack_dst",
    "ALIASES",
    "rename",
    # for others' tools
    "write_jsonl",
    "write_shiviz",
    "write_perfetto",
    "Exported",
    "steps",
    "Stamps",
]
