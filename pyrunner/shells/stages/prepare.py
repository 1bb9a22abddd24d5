"""``prepare_script``: say where the job runs, remove what an earlier job left."""

from __future__ import annotations

from pyrunner.shells.protocol import ScriptContext
from pyrunner.shells.stages.environment import ENV_FILE, MASKING_FILE, in_temp_dir, unexportable
from pyrunner.shells.writer import ScriptWriter


def prepare_script(writer: ScriptWriter, context: ScriptContext) -> bool:
    """facts/job-lifecycle.md section 6."""
    writer.running_on(context.via_host)
    for key in unexportable(context):
        writer.warning(f'Variable "{key}" is not exported: shells cannot hold this name')
    writer.rm_filled(in_temp_dir(context, ENV_FILE))
    writer.rm(in_temp_dir(context, MASKING_FILE))
    return True
