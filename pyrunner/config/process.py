"""Tables of config.toml that concern the whole process (facts/config-toml.md 5)."""

from __future__ import annotations

from typing import Annotated

from pyrunner.config.keys import Duration, Key
from pyrunner.config.table import Table, fresh


class SessionServer(Table):
    """`[session_server]`: interactive terminals and service proxies."""

    listen_address: Annotated[str, Key("host:port to bind with TLS; empty = off")] = ""
    advertise_address: Annotated[str, Key("host:port given to GitLab, without scheme")] = ""
    session_timeout: Annotated[int, Key("seconds a connected terminal keeps a finished job alive", always=True)] = 1800


class Logrotate(Table):
    """`[experimental.usage_logger.logrotate]`."""

    log_dir: Annotated[str, Key("default usage-log beside the config file")] = ""
    max_backup_files: Annotated[int | None, Key("default 14")] = None
    max_rotation_age: Annotated[Duration | None, Key("default 24h")] = None
    labels: Annotated[dict[str, str], Key("merged into each record")] = {}


class SnowplowBilling(Table):
    """`[experimental.usage_logger.snowplow_billing]`."""

    collector_uri: Annotated[str, Key("where records are sent; required")] = ""
    app_id: Annotated[str, Key("default gitlab-runner")] = ""
    category: Annotated[str, Key("default runner_compute_usage")] = ""
    realm: Annotated[str, Key("default SM", choices=("SM", "SaaS", "Dedicated"))] = ""
    deployment_type: Annotated[str, Key("default self-managed")] = ""
    metadata: Annotated[dict[str, str], Key("merged into each record")] = {}
    enable_oidc: Annotated[bool, Key("sign in with OIDC")] = False
    skip_oidc_if_unsupported_cloud: Annotated[bool | None, Key("default true")] = None
    skip_runner_system_failure: Annotated[bool | None, Key("default true")] = None
    batch_delivery_duration_buckets: Annotated[list[float], Key("histogram buckets")] = []


class UsageLogger(Table):
    """`[experimental.usage_logger]`: a record of each job's usage."""

    enabled: Annotated[bool, Key("write usage records", always=True)] = False
    writers: Annotated[list[str], Key("default logrotate", choices=("logrotate", "snowplow_billing"))] = []
    logrotate: Annotated[Logrotate | None, Key("records in files")] = None
    snowplow_billing: Annotated[SnowplowBilling | None, Key("records sent to a collector")] = None
    log_dir: Annotated[str, Key("deprecated, see logrotate")] = ""
    max_backup_files: Annotated[int | None, Key("deprecated, see logrotate")] = None
    max_rotation_age: Annotated[Duration | None, Key("deprecated, see logrotate")] = None
    labels: Annotated[dict[str, str], Key("deprecated, see logrotate")] = {}


class Experimental(Table):
    """`[experimental]`."""

    usage_logger: Annotated[UsageLogger, Key("job usage records", always=True)] = fresh(default_factory=UsageLogger)
