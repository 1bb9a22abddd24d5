"""Settings that fit badly with long polling: a request that is held occupies what other runners wait for."""

from __future__ import annotations

from pyrunner.config.model import Config


def long_polling_issues(config: Config) -> list[str]:
    """Lines of the warning that each load of such a config logs (facts/config-toml.md 3); empty when all is well."""
    runners = [runner for runner in config.runners if runner.token.strip()]
    lines = []
    if config.concurrent < len(runners):
        lines.append(
            f"  - concurrent = {config.concurrent} is less than the number of runners ({len(runners)}): "
            "a held request keeps the others from asking; set concurrent to at least that number"
        )
    for runner in runners:
        if runner.effective_request_concurrency > 1:
            continue
        advice = "set request_concurrency to 2 or more"
        if 1 <= runner.limit <= 2:
            lines.append(f'  - runner "{runner.name}": limit = {runner.limit} with request_concurrency = 1; {advice}')
        else:
            lines.append(f'  - runner "{runner.name}": request_concurrency = 1; {advice}')
    return ["CONFIGURATION: Long polling issues detected.", *lines] if lines else []
