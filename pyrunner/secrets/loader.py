"""Secret sources by the provider key of the payload."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from pyrunner.secrets.errors import SecretConfigError
from pyrunner.secrets.protocol import SecretSource

#: Third parties add sources in this entry point group: ``provider_key = "module:Source"``.
GROUP = "pyrunner.secrets"
#: Our own, found without reading the metadata of every installed package (20 ms).
BUILT_IN = {
    "vault": "pyrunner.secrets.vault:VaultSource",
    "gcp_secret_manager": "pyrunner.secrets.gcp:GcpSource",
    "azure_key_vault": "pyrunner.secrets.azure:AzureSource",
    "aws_secrets_manager": "pyrunner.secrets.aws:AwsSource",
    "gitlab_secrets_manager": "pyrunner.secrets.gitlab:GitLabSource",
}


def find_provider(keys: list[str]) -> str:
    """The first of `keys` that has a source; empty when none has."""
    own = next((key for key in keys if key in BUILT_IN), "")
    if own or not keys:
        return own
    others = _third_party()
    return next((key for key in keys if key in others), "")


def provider_names() -> list[str]:
    """All provider keys that can be resolved here."""
    return sorted({*BUILT_IN, *_third_party()})


def open_source(provider: str) -> SecretSource:
    """A new source of `provider`, one of `provider_names`.

    Raises:
        SecretConfigError: it cannot be loaded.
    """
    target = BUILT_IN.get(provider) or _third_party()[provider]
    module, _, attribute = target.partition(":")
    try:
        factory: Callable[[], SecretSource] = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise SecretConfigError(f'the secret source "{provider}" cannot be loaded from {target}: {error}') from error
    return factory()


def _third_party() -> dict[str, str]:
    # Imported here: it is slow, and most jobs need our own sources only.
    from importlib.metadata import entry_points

    return {entry.name: entry.value for entry in entry_points(group=GROUP) if entry.name not in BUILT_IN}
