"""One job with a secret from each provider: the real stage, the real trace, stores on real sockets."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from pyrunner.api.variables import Variables
from pyrunner.api.wire import JobVariable, decode_job
from pyrunner.base.cancel import CancelToken
from pyrunner.config import feature_flags
from pyrunner.job.trace import JobTrace
from pyrunner.job.variables import masked_values
from pyrunner.secrets.errors import SecretError
from pyrunner.secrets.gcp import GcpSource
from pyrunner.secrets.resolve import resolve_secrets
from tests.unit.secrets.stores import ROLE_KEY, Aws, Azure, Gcp, Reply, Store, Vault, make_jwt

PASSWORDS = {
    "VAULT_PASSWORD": "of-vault-$HOME",
    "GITLAB_PASSWORD": "of-gitlab",
    "AWS_PASSWORD": "of-aws",
    "GCP_PASSWORD": "of-gcp\n",
    "AZURE_PASSWORD": "of-azure",
}


class Providers:
    """All stores with one password each, and the job that wants them."""

    def __init__(self, stack: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
        self.vault: Vault = stack.enter_context(Vault())
        self.openbao: Vault = stack.enter_context(Vault())
        self.aws: Aws = stack.enter_context(Aws())
        self.gcp: Gcp = stack.enter_context(Gcp())
        self.azure: Azure = stack.enter_context(Azure())
        self.tokens = {
            name: make_jwt(store.audience)
            for name, store in (
                ("VAULT_ID_TOKEN", self.vault),
                ("BAO_ID_TOKEN", self.openbao),
                ("AWS_ID_TOKEN", self.aws),
                ("GCP_ID_TOKEN", self.gcp),
                ("AZURE_JWT", self.azure),
            )
        }
        self.vault.secrets["kv-v2/data/production/db"] = {"password": PASSWORDS["VAULT_PASSWORD"]}
        self.openbao.secrets["project_5/secrets/kv/data/explicit/KEY"] = {"value": PASSWORDS["GITLAB_PASSWORD"]}
        self.aws.secrets["app/db", "AWSCURRENT"] = {"SecretString": '{"password": "of-aws"}'}
        self.gcp.secrets["projects/1234/secrets/db/versions/2"] = PASSWORDS["GCP_PASSWORD"].encode()
        self.azure.secrets["db"] = PASSWORDS["AZURE_PASSWORD"]
        for name, value in self.aws.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AZURE_AUTHORITY_HOST", self.azure.url)
        # Google's endpoints have no variable of their own
        gcp = self.gcp
        monkeypatch.setattr("pyrunner.secrets.gcp.GcpSource", lambda: GcpSource(gcp.url, gcp.url))

    @property
    def stores(self) -> list[Store]:
        return [self.vault, self.openbao, self.aws, self.gcp, self.azure]

    def payload(self) -> dict[str, Any]:
        """``secrets`` as GitLab sends them: tokens are references to variables."""
        vault = {
            "server": {
                "url": self.vault.url,
                "namespace": None,
                "auth": {"name": "jwt", "path": "jwt", "data": {"jwt": "${VAULT_ID_TOKEN}", "role": "deployer"}},
            },
            "engine": {"name": "kv-v2", "path": "kv-v2"},
            "path": "$STAGE/db",
            "field": "password",
        }
        gitlab = {
            "server": {
                "url": self.openbao.url,
                "inline_auth": {"jwt": self.tokens["BAO_ID_TOKEN"], "role": "deployer", "auth_mount": "jwt"},
            },
            "engine": {"name": "kv-v2", "path": "project_5/secrets/kv"},
            "path": "explicit/KEY",
            "field": "value",
        }
        aws = {
            "secret_id": "app/db",
            "field": "password",
            "server": {"region": "eu-central-1", "jwt": "$AWS_ID_TOKEN", "role_arn": self.aws.role},
        }
        gcp = {
            "name": "db",
            "version": "2",
            "server": {
                "project_number": "1234",
                "workload_identity_federation_pool_id": "pool",
                "workload_identity_federation_provider_id": "gitlab",
                "jwt": "$GCP_ID_TOKEN",
            },
        }
        azure = {
            "name": "db",
            "server": {"client_id": "client-1", "tenant_id": "tenant-1", "jwt": "$AZURE_JWT", "url": self.azure.url},
        }
        return {
            "VAULT_PASSWORD": {"vault": vault, "file": False},
            "GITLAB_PASSWORD": {"gitlab_secrets_manager": gitlab},
            "AWS_PASSWORD": {"aws_secrets_manager": aws, "gcp_secret_manager": None},
            "GCP_PASSWORD": {"gcp_secret_manager": gcp},
            "AZURE_PASSWORD": {"azure_key_vault": azure},
        }


@pytest.fixture
def providers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Providers]:
    with ExitStack() as stack:
        yield Providers(stack, monkeypatch)


def run_stage(providers: Providers, trace: JobTrace, attempts: int = 1) -> list[JobVariable]:
    job = decode_job(json.dumps({"id": 1, "secrets": providers.payload()}).encode())
    tokens = [JobVariable(key=key, value=value, masked=True) for key, value in providers.tokens.items()]
    variables = Variables([*tokens, JobVariable(key="STAGE", value="production")])
    flags, _ = feature_flags.resolve({}, lambda key: None)
    return resolve_secrets(job.secrets, variables, flags, CancelToken(), trace.runner, attempts=attempts)


def test_every_provider_in_one_job(providers: Providers, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), closing(JobTrace(None, 1, "")) as trace:
        found = run_stage(providers, trace)
        trace.add_masks(masked_values(found))
        for value in PASSWORDS.values():
            trace.script.write(f"the password is {value.strip()}.\n".encode())
        trace.script.flush()
        log = trace.read(0, 1 << 20).decode()
    assert {variable.key: variable.value for variable in found} == PASSWORDS
    assert [variable.file for variable in found] == [False, True, True, True, True]
    assert all(variable.masked and variable.raw and not variable.public for variable in found)
    assert log.count("the password is [MASKED].") == len(PASSWORDS)
    assert 'Using "azure_key_vault" secret resolver...' in log
    assert_nothing_shown(providers, log + caplog.text)
    assert providers.vault.tokens == set()
    assert len(providers.vault.revoked) == 1


def test_every_provider_down_names_itself_and_shows_nothing(
    providers: Providers, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that repeats what it was sent, in each place where it can fail."""
    for store in providers.stores:
        with caplog.at_level(logging.DEBUG), closing(JobTrace(None, 1, "")) as trace:
            echo = " ".join([*providers.tokens.values(), ROLE_KEY.token, Gcp.access_token, Azure.access_token])
            store.fail("", Reply(403, {"errors": [echo], "message": echo}), times=99)
            with pytest.raises(SecretError, match="403 Forbidden") as caught:
                run_stage(providers, trace)
            store._faults.clear()
            own = providers.tokens[list(providers.tokens)[providers.stores.index(store)]]
            log = trace.read(0, 1 << 20).decode()
            assert own not in f"{log}{caplog.text}{caught.value!r}{caught.value}"


def test_outage_of_some_requests_is_survived(providers: Providers) -> None:
    for store in providers.stores:
        store.fail("", Reply(503), times=1)
    with closing(JobTrace(None, 1, "")) as trace:
        assert {variable.key: variable.value for variable in run_stage(providers, trace)} == PASSWORDS
    assert all(len(store.asked) >= 2 for store in providers.stores)


def assert_nothing_shown(providers: Providers, text: str) -> None:
    hidden = [*PASSWORDS.values(), *providers.tokens.values(), *providers.vault.revoked]
    hidden += [ROLE_KEY.secret, ROLE_KEY.token, Gcp.access_token, Azure.access_token]
    assert [value for value in hidden if value.strip() in text] == []
