"""Flags of `register` and `run-single`: one for every key that has one, with the names that scripts use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from pyrunner.base.errors import UsageError
from pyrunner.cli.parse import parse
from pyrunner.cli.runner_flags import apply_flags, runner_flags
from pyrunner.cli.spec import KINDS
from pyrunner.config.flags import flag_keys
from pyrunner.config.keys import Field, fields_of
from pyrunner.config.model import RunnerConfig
from pyrunner.config.table import Table

FLAGS = {flag.name: flag for flag in runner_flags()}

#: Tables that only a file or a template can fill (facts/config-toml.md 6, 11, 14).
WITHOUT_FLAGS = {"referees", "artifact", "monitoring", "instance", "autoscaler", "experimental"}
WITHOUT_FLAGS |= {"affinity", "volumes", "dns_config", "container_lifecycle", "connector_config"}

#: Names that follow no rule: flag, variable.
DEVIATIONS = {
    "name": "RUNNER_NAME",
    "env": "RUNNER_ENV",
    "url": "CI_SERVER_URL",
    "token": "CI_SERVER_TOKEN",
    "tls-ca-file": "CI_SERVER_TLS_CA_FILE",
    "tls-cert-file": "CI_SERVER_TLS_CERT_FILE",
    "tls-key-file": "CI_SERVER_TLS_KEY_FILE",
    "unhealthy-interval": "",
    "job-status-final-update-retry-limit": "RUNNER_job_status_final_update_retry_limit",
    "clone-url": "CLONE_URL",
    "feature-flags": "FEATURE_FLAGS",
    "step-runner-image": "STEP_RUNNER_IMAGE",
    "custom_build_dir-enabled": "CUSTOM_BUILD_DIR_ENABLED",
    "limit": "RUNNER_LIMIT",
    "ssh-identity-file": "SSH_IDENTITY_FILE",
    "ssh-disable-strict-host-key-checking": "DISABLE_STRICT_HOST_KEY_CHECKING",
    "ssh-known-hosts-file": "KNOWN_HOSTS_FILE",
    "docker-host": "DOCKER_HOST",
    "docker-cert-path": "DOCKER_CERT_PATH",
    "docker-tlsverify": "DOCKER_TLS_VERIFY",
    "docker-services_privileged": "DOCKER_SERVICES_PRIVILEGED",
    "docker-allowed_users": "DOCKER_ALLOWED_USERS",
    "docker-userns": "DOCKER_USERNS_MODE",
    "docker-services_devices": "DOCKER_SERVICES_DEVICES",
    "docker-ipcmode": "DOCKER_IPC_MODE",
    "docker-service_gpus": "DOCKER_SERVICE_GPUS",
    "docker-container-labels": "",
    "docker-enable-ipv6": "",
    "docker-network-mtu": "",
    "docker-image": "DOCKER_IMAGE",
    "machine-idle-nodes": "MACHINE_IDLE_COUNT",
    "machine-idle-scale-factor": "MACHINE_IDLE_SCALE_FACTOR",
    "machine-machine-driver": "MACHINE_DRIVER",
    "machine-machine-name": "MACHINE_NAME",
    "machine-machine-options": "MACHINE_OPTIONS",
    "machine-machine-options-with-name": "MACHINE_OPTIONS_WITH_NAME",
    "custom-config-args": "",
    "custom-run-exec": "CUSTOM_RUN_EXEC",
    "cache-max_uploaded_archive_size": "CACHE_MAXIMUM_UPLOADED_ARCHIVE_SIZE",
    "cache-s3-authentication_type": "CACHE_S3_AUTHENTICATION_TYPE",
    "cache-s3-server-side-encryption-key-id": "CACHE_S3_SERVER_SIDE_ENCRYPTION_KEY_ID",
    "cache-gcs-credentials-file": "GOOGLE_APPLICATION_CREDENTIALS",
    "cache-gcs-access-id": "CACHE_GCS_ACCESS_ID",
    "cache-azure-storage-domain": "CACHE_AZURE_STORAGE_DOMAIN",
    "kubernetes-context": "KUBECTL_CONTEXT",
    "kubernetes-bearer_token": "KUBERNETES_BEARER_TOKEN",
    "kubernetes-namespace_overwrite_allowed": "KUBERNETES_NAMESPACE_OVERWRITE_ALLOWED",
    "kubernetes-cpu-limit": "KUBERNETES_CPU_LIMIT",
    "kubernetes-cpu-limit-overwrite-max-allowed": "KUBERNETES_CPU_LIMIT_OVERWRITE_MAX_ALLOWED",
    "kubernetes-ephemeral-storage-limit": "KUBERNETES_EPHEMERAL_STORAGE_LIMIT",
    "kubernetes-service-ephemeral_storage-limit": "KUBERNETES_SERVICE_EPHEMERAL_STORAGE_LIMIT",
    "kubernetes-helper-ephemeral_storage-request-overwrite-max-allowed": (
        "KUBERNETES_HELPER_EPHEMERAL_STORAGE_REQUEST_OVERWRITE_MAX_ALLOWED"
    ),
    "kubernetes-pod-cpu-limit": "KUBERNETES_POD_CPU_LIMIT",
    "kubernetes-pod_termination_grace_period_seconds": "KUBERNETES_POD_TERMINATION_GRACE_PERIOD_SECONDS",
    "kubernetes-cleanup_resources_timeout": "KUBERNETES_CLEANUP_RESOURCES_TIMEOUT",
    "kubernetes-retry-limit": "KUBERNETES_REQUEST_RETRY_LIMIT",
    "kubernetes-retry-backoff-max": "KUBERNETES_REQUEST_RETRY_BACKOFF_MAX",
    "kubernetes-pod-labels": "",
    "kubernetes-pod-annotations": "",
    "kubernetes-host_aliases": "",
    "kubernetes-priority_class_name": "KUBERNETES_PRIORITY_CLASS_NAME",
    "kubernetes-pod-security-context-run-as-user": "KUBERNETES_POD_SECURITY_CONTEXT_RUN_AS_USER",
    "kubernetes-pod-security-context-selinux-type": "",
    "kubernetes-pod-security-context-supplemental-groups": "",
    "kubernetes-build_container_security_context-run-as-user": (
        "KUBERNETES_BUILD_CONTAINER_SECURITY_CONTEXT_RUN_AS_USER"
    ),
    "kubernetes-build_container_security_context-capabilities-add": (
        "KUBERNETES_BUILD_CONTAINER_SECURITY_CONTEXT_CAPABILITIES_ADD"
    ),
    "kubernetes-init_permissions_container_security_context-seccomp_profile-type": (
        "KUBERNETES_INIT_PERMISSIONS_CONTAINER_SECURITY_CONTEXT_SECCOMP_PROFILE_TYPE"
    ),
}


def keys_below(table: type[Table], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Field]]:
    """All plain keys of an entry, the way to each."""
    for field in fields_of(table):
        if field.kind == "table" and field.table is not None:
            if field.name not in WITHOUT_FLAGS:
                yield from keys_below(field.table, (*path, field.name))
        else:
            yield (*path, field.name), field


def test_no_key_lacks_its_flag() -> None:
    made = {key.path for key in flag_keys()}
    for path, field in keys_below(RunnerConfig):
        if field.key.flag == "" or field.kind in ("tables", "free") and not field.key.flag:
            assert path not in made
        else:
            assert path in made, f"{'.'.join(path)} has no flag"


@pytest.mark.parametrize(("flag", "variable"), DEVIATIONS.items())
def test_names_that_scripts_use(flag: str, variable: str) -> None:
    assert FLAGS[flag].env == ((variable,) if variable else ())


def test_names_are_unique_and_kinds_known() -> None:
    names = Counter(name for flag in FLAGS.values() for name in (flag.name, *flag.aliases))
    variables = Counter(name for flag in FLAGS.values() for name in flag.env)
    assert [name for name, count in (names + variables).items() if count > 1] == []
    assert {flag.kind for flag in FLAGS.values()} <= set(KINDS)
    assert FLAGS["name"].aliases == ("description",)
    assert FLAGS["url"].aliases == ("u",)
    assert FLAGS["token"].aliases == ("t",)


def applied(*words: str, **environment: str) -> RunnerConfig:
    return apply_flags(parse(FLAGS.values(), words, environment))


def test_the_name_defaults_to_the_host_and_tables_without_flags_stay_absent() -> None:
    runner = applied()
    assert runner.name
    assert runner == RunnerConfig(name=runner.name)


def test_values_of_every_kind_arrive() -> None:
    runner = applied(
        "--description=d", "-t", "glrt-x", "--limit", "3", "--clean-git-config=false", "--prepare-timeout", "1m",
        "--env", "A=1,2", "--env", "B=2", "--feature-flags", "FF_X:true", "--docker-pull-policy", "always, never",
        "--docker-services_devices", "alpine:/dev/a", "--docker-tmpfs", "/a:rw:x", "--machine-idle-scale-factor", "1.5",
        "--kubernetes-retry-limits", "reset:7", "--kubernetes-pod-security-context-supplemental-groups", "7",
        "--kubernetes-host_aliases", '[{"ip": "127.0.0.1", "hostnames": ["a"]}]', "--docker-services-limit", "0",
        "--custom_build_dir-enabled", "true",
    )  # fmt: skip
    assert (runner.name, runner.token, runner.limit, runner.prepare_timeout) == ("d", "glrt-x", 3, 60)
    assert (runner.clean_git_config, runner.safe_directory_checkout) == (False, None)
    assert runner.environment == ["A=1,2", "B=2"]
    assert runner.feature_flags == {"FF_X": True}
    assert runner.docker is not None
    assert runner.docker.pull_policy == ["always", "never"]
    assert runner.docker.services_limit == 0
    assert runner.docker.tmpfs == {"/a": "rw:x"}
    assert runner.docker.services_devices == {"alpine": ["/dev/a"]}
    assert runner.machine is not None
    assert runner.machine.idle_scale_factor == 1.5
    assert runner.kubernetes is not None
    assert runner.kubernetes.retry_limits == {"reset": 7}
    assert runner.kubernetes.host_aliases[0].hostnames == ["a"]
    assert runner.kubernetes.pod_security_context.supplemental_groups == [7]
    assert runner.custom_build_dir is not None
    assert runner.custom_build_dir.enabled is True
    assert runner.ssh is None


def test_variables_count_and_flags_win() -> None:
    runner = applied("--limit", "2", RUNNER_LIMIT="5", CI_SERVER_URL="https://x", DOCKER_PRIVILEGED="")
    assert (runner.limit, runner.url) == (2, "https://x")
    assert runner.docker is not None
    assert runner.docker.privileged is True


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--kubernetes-pod-security-context-supplemental-groups", "x"], "invalid value"),
        (["--kubernetes-host_aliases", '{"ip": "x"}'], "expected a JSON array of objects"),
        (["--kubernetes-host_aliases", '[{"ip": 1}]'], "destination has type string"),
        (["--kubernetes-host_aliases", '[{"pi": "1"}]'], "unknown key"),
        (["--kubernetes-retry-limits", "a:b"], "invalid value"),
    ],
)
def test_a_value_that_does_not_fit_names_the_flag(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        applied(*words)
    assert words[0].lstrip("-") in str(caught.value)
