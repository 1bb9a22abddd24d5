"""Making the trace of a job from what the job and its flags say (facts/job-lifecycle.md 5.5 to 5.7)."""

from __future__ import annotations

from pyrunner.api.wire import Info, JobResponse
from pyrunner.job.context import JobContext
from pyrunner.job.trace import JobTrace
from pyrunner.job.trace.protocol import Keeper, TraceClient
from pyrunner.job.variables import masked_values

#: Token prefixes masked with ``FF_MASK_ALL_DEFAULT_TOKENS``, beside the one that is always masked.
DEFAULT_TOKEN_PREFIXES = (
    "gloas-",
    "gldt-",
    "glrt-",
    "glcbt-",
    "glrtr-",
    "glptt-",
    "glft-",
    "glimt-",
    "glagent-",
    "glsoat-",
    "glffct-",
    "_gitlab_session=",
    "gltok-",
)


#: What is shorter is no secret, and would blacken the log.
_SHORTEST_TOKEN = 8


def job_tokens(job: JobResponse) -> list[str]:
    """Tokens that the runner itself hands to git and the helper commands, whatever their form and the variables say."""
    tokens = [job.token, *(dependency.token for dependency in job.dependencies)]
    return [token for token in tokens if len(token) >= _SHORTEST_TOKEN]


def open_trace(
    context: JobContext,
    client: TraceClient | None,
    info: Info | None,
    spool_dir: str = "",
    keeper: Keeper | None = None,
) -> JobTrace:
    """The trace of a job; nothing is sent before its `start`.

    Raises:
        OSError: there is no room for it.
    """
    job, config, flags = context.job, context.setting.config, context.flags
    defaults = DEFAULT_TOKEN_PREFIXES if flags.get("FF_MASK_ALL_DEFAULT_TOKENS", True) else ()
    return JobTrace(
        client,
        job.id,
        job.token,
        masks=[*masked_values(context.variables), *job_tokens(job)],
        token_prefixes=[*defaults, *job.features.token_mask_prefixes],
        limit_bytes=config.effective_output_limit,
        timestamps=flags.get("FF_TIMESTAMPS", True),
        sections=job.features.trace_sections,
        info=info,
        debug_trace=context.settings.debug_trace or context.settings.debug_services,
        retry_limit=config.effective_final_update_retry_limit,
        spool_dir=spool_dir or None,
        keeper=keeper,
        dynamic_force_send=flags.get("FF_USE_DYNAMIC_TRACE_FORCE_SEND_INTERVAL", False),
    )
