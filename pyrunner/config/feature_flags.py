"""Feature flags: names, defaults and which of them do something here (facts/runner-api.md 11)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))


class FeatureFlag:
    """One flag. `built` says whether this version acts on it; others are exported to the job and have no effect."""

    __slots__ = ("built", "default", "description", "name")

    def __init__(self, name: str, description: str, *, default: bool = False, built: bool = False) -> None:
        self.name = name
        self.default = default
        self.description = description
        self.built = built


FEATURE_FLAGS: dict[str, FeatureFlag] = {
    flag.name: flag
    for flag in (
        FeatureFlag("FF_NETWORK_PER_BUILD", "docker: one network per job (name in CI_BUILD_NETWORK_NAME)", built=True),
        FeatureFlag("FF_USE_LEGACY_KUBERNETES_EXECUTION_STRATEGY", "kubernetes: exec instead of attach"),
        FeatureFlag("FF_USE_DIRECT_DOWNLOAD", "artifacts: direct_download=true on first try", default=True, built=True),
        FeatureFlag("FF_USE_FASTZIP", "fast zip implementation (deprecated switch)", default=True, built=True),
        FeatureFlag(
            "FF_DISABLE_UMASK_FOR_DOCKER_EXECUTOR", "no umask 0000; chown to the image user instead", built=True
        ),
        FeatureFlag("FF_ENABLE_BASH_EXIT_CODE_CHECK", "explicit exit-code check after each script command", built=True),
        FeatureFlag("FF_USE_WINDOWS_LEGACY_PROCESS_STRATEGY", "old Windows process set-up"),
        FeatureFlag("FF_USE_LEGACY_BASH_EVAL", ": | eval … form of the bash wrapper", built=True),
        FeatureFlag("FF_USE_POWERSHELL_PATH_RESOLVER", "PowerShell resolves paths at run time", built=True),
        FeatureFlag(
            "FF_USE_DYNAMIC_TRACE_FORCE_SEND_INTERVAL",
            "longest pause between log updates grows with the update interval",
            built=True,
        ),
        FeatureFlag("FF_SCRIPT_SECTIONS", "multi-line commands as collapsible sections", built=True),
        FeatureFlag("FF_ENABLE_JOB_CLEANUP", "clean the project dir at the end", built=True),
        FeatureFlag("FF_KUBERNETES_HONOR_ENTRYPOINT", "keep the image entrypoint"),
        FeatureFlag("FF_POSIXLY_CORRECT_ESCAPES", "POSIX quoting instead of $'…'", built=True),
        FeatureFlag(
            "FF_RESOLVE_FULL_TLS_CHAIN", "resolve the chain up to the root for CI_SERVER_TLS_CA_FILE", built=True
        ),
        FeatureFlag("FF_DISABLE_POWERSHELL_STDIN", "pass PowerShell scripts by file (shell/custom)", built=True),
        FeatureFlag("FF_USE_POD_ACTIVE_DEADLINE_SECONDS", "pod deadline = job timeout", default=True),
        FeatureFlag("FF_USE_ADVANCED_POD_SPEC_CONFIGURATION", "allow pod_spec patches"),
        FeatureFlag("FF_SECRET_RESOLVING_FAILS_IF_MISSING", "missing secret fails the job", default=True, built=True),
        FeatureFlag("FF_PRINT_POD_EVENTS", "print pod events until start"),
        FeatureFlag("FF_USE_GIT_BUNDLE_URIS", "git transfer.bundleURI=true", default=True, built=True),
        FeatureFlag("FF_USE_GIT_NATIVE_CLONE", "git clone (git ≥ 2.49) for strategy clone", built=True),
        FeatureFlag("FF_USE_DUMB_INIT_WITH_KUBERNETES_EXECUTOR", "dumb-init as PID 1"),
        FeatureFlag("FF_USE_INIT_WITH_DOCKER_EXECUTOR", "docker --init", built=True),
        FeatureFlag("FF_LOG_IMAGES_CONFIGURED_FOR_JOB", "log image names in the runner log", built=True),
        FeatureFlag("FF_USE_DOCKER_AUTOSCALER_DIAL_STDIO", "tunnel via docker system dial-stdio", default=True),
        FeatureFlag("FF_CLEAN_UP_FAILED_CACHE_EXTRACT", "remove cache paths after a failed extraction", built=True),
        FeatureFlag("FF_USE_WINDOWS_JOB_OBJECT", "Windows job objects"),
        FeatureFlag("FF_TIMESTAMPS", "timestamped trace lines", default=True, built=True),
        FeatureFlag("FF_DISABLE_AUTOMATIC_TOKEN_ROTATION", "do not renew expiring tokens", built=True),
        FeatureFlag("FF_USE_LEGACY_GCS_CACHE_ADAPTER", "old GCS adapter"),
        FeatureFlag("FF_DISABLE_UMASK_FOR_KUBERNETES_EXECUTOR", "no umask 0000; chown to the image user instead"),
        FeatureFlag("FF_USE_LEGACY_S3_CACHE_ADAPTER", "old S3 adapter"),
        FeatureFlag("FF_GIT_URLS_WITHOUT_TOKENS", "credential helper instead of token in URLs", built=True),
        FeatureFlag("FF_WAIT_FOR_POD_TO_BE_REACHABLE", "wait for pod readiness"),
        FeatureFlag("FF_MASK_ALL_DEFAULT_TOKENS", "mask all known token prefixes", default=True, built=True),
        FeatureFlag("FF_EXPORT_HIGH_CARDINALITY_METRICS", "extra metrics"),
        FeatureFlag("FF_USE_FLEETING_ACQUIRE_HEARTBEATS", "check instance before assigning a job"),
        FeatureFlag(
            "FF_USE_EXPONENTIAL_BACKOFF_STAGE_RETRY", "stage retries wait 5 s … 5 min", default=True, built=True
        ),
        FeatureFlag(
            "FF_USE_ADAPTIVE_REQUEST_CONCURRENCY",
            "adapt the number of parallel job requests to the answers",
            default=True,
            built=True,
        ),
        FeatureFlag(
            "FF_USE_GITALY_CORRELATION_ID", "X-Gitaly-Correlation-ID header on git requests", default=True, built=True
        ),
        FeatureFlag("FF_USE_GIT_PROACTIVE_AUTH", "http.proactiveAuth=basic", built=True),
        FeatureFlag("FF_HASH_CACHE_KEYS", "SHA-256 cache keys", built=True),
        FeatureFlag("FF_ENABLE_JOB_INPUTS_INTERPOLATION", "fill job inputs into scripts", default=True, built=True),
        FeatureFlag("FF_USE_JOB_ROUTER", "ask a job router for jobs"),
        FeatureFlag("FF_SCRIPT_TO_STEP_MIGRATION", "run user scripts as steps"),
        FeatureFlag("FF_USE_PARALLEL_CACHE_TRANSFER", "parallel cache transfers", built=True),
        FeatureFlag("FF_USE_PARALLEL_ARTIFACT_TRANSFER", "parallel artifact download", built=True),
        FeatureFlag("FF_CONCRETE", "whole job through step-runner"),
        FeatureFlag("FF_SUSPENDABLE_ENVIRONMENTS", "suspend/resume of job environments"),
        FeatureFlag("FF_USE_NATIVE_CONTAINER_STOP", "plain container stop on cancel", built=True),
        FeatureFlag("FF_TEST_FEATURE", "no effect (tests)"),
    )
}

#: Flags of older versions that are gone: naming one is harmless, and means nothing.
GONE = (
    "FF_SKIP_NOOP_BUILD_STAGES",
    "FF_USE_NEW_BASH_EVAL_STRATEGY",
    "FF_SET_PERMISSIONS_BEFORE_CLEANUP",
    "FF_RETRIEVE_POD_WARNING_EVENTS",
)


def resolve(
    configured: Mapping[str, bool], job_variable: Callable[[str], str | None]
) -> tuple[dict[str, bool], list[str]]:
    """The state of every flag for one job, and warnings about job variables that are no booleans.

    What ``[runners.feature_flags]`` says cannot be overridden by the job; then the job's variable counts, then the
    default.

    Args:
        configured: of the runner entry.
        job_variable: value of a job variable by name, or None.
    """
    states: dict[str, bool] = {}
    warnings: list[str] = []
    for name, flag in FEATURE_FLAGS.items():
        states[name] = flag.default
        if name in configured:
            states[name] = configured[name]
        elif (value := job_variable(name)) in _TRUE:
            states[name] = True
        elif value in _FALSE:
            states[name] = False
        elif value:
            warnings.append(f"{name}: could not parse feature flag, expected bool, got {value}")
    return states, warnings
