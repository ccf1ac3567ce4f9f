"""Write a lowered program, and from which lines of the model its instructions come."""

import logging
from pathlib import Path
from typing import Any

from tasks.export.lowering.passes import LeftOut
from tasks.export.process.sandbox import is_failed_allocation
from tasks.export.sources import write_sources

logger = logging.getLogger(__name__)


def write_program(lowered: Any, folder: Path, *, with_sources: bool) -> list[LeftOut]:
    """Write a lowered program, with its sources and ETRecord if requested; return the latter if it is left out."""
    with (folder / "model.pte").open("wb") as stream:
        lowered.write_to_file(stream)
    if not with_sources:
        return []
    write_sources(lowered, folder)
    try:
        etrecord = lowered.get_etrecord()
        etrecord.graph_map = None  # the edge program after the farm's passes, a third copy of all weights
        etrecord.save(folder / "model.etrecord")
    except Exception as error:
        if isinstance(error, OSError) or is_failed_allocation(error):
            raise
        logger.warning("the ETRecord cannot be written", exc_info=True)
        (folder / "model.etrecord").unlink(missing_ok=True)
        cause = f"executorch cannot write it ({type(error).__name__}); the log has the cause"
        return [LeftOut("ETRecord", None, cause)]
    return []
