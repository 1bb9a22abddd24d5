"""Where AWS services are: by region, or as the runner's environment says."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyrunner.secrets.errors import SecretConfigError

_REGION = re.compile(r"[a-z]{2,}(-[a-z0-9]+)+")
_DOMAINS = {"cn-": "amazonaws.com.cn", "us-iso-": "c2s.ic.gov", "us-isob-": "sc2s.sgov.gov"}


def endpoint(service: str, region: str, environment: Mapping[str, str]) -> str:
    """URL of `service` (``sts``, ``secretsmanager``), with a path.

    ``AWS_ENDPOINT_URL_STS``, ``AWS_ENDPOINT_URL_SECRETS_MANAGER`` and ``AWS_ENDPOINT_URL`` come first.

    Raises:
        SecretConfigError: `region` is none.
    """
    # the region comes from the job: unchecked it could lead a signed request to any host
    if not _REGION.fullmatch(region):
        raise SecretConfigError(f'"{region}" is not an AWS region, expected for example: eu-central-1')
    name = {"secretsmanager": "SECRETS_MANAGER"}.get(service, service.upper())
    chosen = environment.get(f"AWS_ENDPOINT_URL_{name}") or environment.get("AWS_ENDPOINT_URL")
    if chosen:
        return chosen.rstrip("/") + "/"
    domain = next((domain for prefix, domain in _DOMAINS.items() if region.startswith(prefix)), "amazonaws.com")
    return f"https://{service}.{region}.{domain}/"
