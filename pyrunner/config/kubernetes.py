"""`[runners.kubernetes]` (facts/config-toml.md 14); its sub-tables are in `pods`."""

from __future__ import annotations

from typing import Annotated

from pyrunner.config.docker import PULL_POLICIES, ServiceConfig
from pyrunner.config.keys import Duration, Key, Policies
from pyrunner.config.pods import (
    Affinity,
    ContainerLifecycle,
    ContainerSecurityContext,
    DnsConfig,
    HostAlias,
    KubernetesAutoscaler,
    PodSecurityContext,
    PodSpec,
    Volumes,
)
from pyrunner.config.table import Table, fresh

_DNS_POLICIES = ("none", "default", "cluster-first", "cluster-first-with-host-net")


class KubernetesConfig(Table):
    """`[runners.kubernetes]`: the cluster, the pod of a job, and what a job may choose."""

    host: Annotated[str, Key("API server URL; empty = find it", always=True)] = ""
    context: Annotated[str, Key("kubeconfig context when host is empty", env="KUBECTL_CONTEXT")] = ""
    cert_file: Annotated[str, Key("client certificate")] = ""
    key_file: Annotated[str, Key("client key")] = ""
    ca_file: Annotated[str, Key("CA of the API server")] = ""
    bearer_token_overwrite_allowed: Annotated[
        bool,
        Key(
            "allow the job variable KUBERNETES_BEARER_TOKEN",
            always=True,
            flag="kubernetes-bearer_token_overwrite_allowed",
        ),
    ] = False
    bearer_token: Annotated[str, Key("service account token", flag="kubernetes-bearer_token", secret=True)] = ""
    image: Annotated[str, Key("default job image", always=True)] = ""
    namespace: Annotated[str, Key("namespace of job pods", always=True)] = ""
    namespace_overwrite_allowed: Annotated[
        str,
        Key(
            "regular expression of namespaces a job may choose",
            always=True,
            flag="kubernetes-namespace_overwrite_allowed",
        ),
    ] = ""
    namespace_per_job: Annotated[
        bool, Key("one namespace per job", always=True, flag="kubernetes-namespace_per_job")
    ] = False
    privileged: Annotated[bool | None, Key("privileged containers; absent = as the cluster")] = None
    runtime_class_name: Annotated[str | None, Key("RuntimeClass")] = None
    allow_privilege_escalation: Annotated[bool | None, Key("absent = not sent")] = None
    cpu_limit: Annotated[str, Key("CPU limit, build container")] = ""
    cpu_limit_overwrite_max_allowed: Annotated[str, Key("most a job may ask for")] = ""
    cpu_request: Annotated[str, Key("CPU request, build container")] = ""
    cpu_request_overwrite_max_allowed: Annotated[str, Key("most a job may ask for")] = ""
    memory_limit: Annotated[str, Key("memory limit, build container")] = ""
    memory_limit_overwrite_max_allowed: Annotated[str, Key("most a job may ask for")] = ""
    memory_request: Annotated[str, Key("memory request, build container")] = ""
    memory_request_overwrite_max_allowed: Annotated[str, Key("most a job may ask for")] = ""
    ephemeral_storage_limit: Annotated[str, Key("ephemeral storage limit, build container")] = ""
    ephemeral_storage_limit_overwrite_max_allowed: Annotated[str, Key("most a job may ask for")] = ""
    ephemeral_storage_request: Annotated[str, Key("ephemeral storage request, build container")] = ""
    ephemeral_storage_request_overwrite_max_allowed: Annotated[str, Key("most a job may ask for")] = ""
    service_cpu_limit: Annotated[str, Key("CPU limit, service containers")] = ""
    service_cpu_limit_overwrite_max_allowed: Annotated[str, Key("most a job may ask for")] = ""
    service_cpu_request: Annotated[str, Key("CPU request, service containers")] = ""
    service_cpu_request_overwrite_max_allowed: Annotated[str, Key("most a job may ask for")] = ""
    service_memory_limit: Annotated[str, Key("memory limit, service containers")] = ""
    service_memory_limit_overwrite_max_allowed: Annotated[str, Key("most a job may ask for")] = ""
    service_memory_request: Annotated[str, Key("memory request, service containers")] = ""
    service_memory_request_overwrite_max_allowed: Annotated[str, Key("most a job may ask for")] = ""
    service_ephemeral_storage_limit: Annotated[
        str, Key("ephemeral storage limit, service containers", flag="kubernetes-service-ephemeral_storage-limit")
    ] = ""
    service_ephemeral_storage_limit_overwrite_max_allowed: Annotated[
        str, Key("most a job may ask for", flag="kubernetes-service-ephemeral_storage-limit-overwrite-max-allowed")
    ] = ""
    service_ephemeral_storage_request: Annotated[
        str, Key("ephemeral storage request, service containers", flag="kubernetes-service-ephemeral_storage-request")
    ] = ""
    service_ephemeral_storage_request_overwrite_max_allowed: Annotated[
        str, Key("most a job may ask for", flag="kubernetes-service-ephemeral_storage-request-overwrite-max-allowed")
    ] = ""
    helper_cpu_limit: Annotated[str, Key("CPU limit, helper container")] = ""
    helper_cpu_limit_overwrite_max_allowed: Annotated[str, Key("most a job may ask for")] = ""
    helper_cpu_request: Annotated[str, Key("CPU request, helper container")] = ""
    helper_cpu_request_overwrite_max_allowed: Annotated[str, Key("most a job may ask for")] = ""
    helper_memory_limit: Annotated[str, Key("memory limit, helper container")] = ""
    helper_memory_limit_overwrite_max_allowed: Annotated[str, Key("most a job may ask for")] = ""
    helper_memory_request: Annotated[str, Key("memory request, helper container")] = ""
    helper_memory_request_overwrite_max_allowed: Annotated[str, Key("most a job may ask for")] = ""
    helper_ephemeral_storage_limit: Annotated[
        str, Key("ephemeral storage limit, helper container", flag="kubernetes-helper-ephemeral_storage-limit")
    ] = ""
    helper_ephemeral_storage_limit_overwrite_max_allowed: Annotated[
        str, Key("most a job may ask for", flag="kubernetes-helper-ephemeral_storage-limit-overwrite-max-allowed")
    ] = ""
    helper_ephemeral_storage_request: Annotated[
        str, Key("ephemeral storage request, helper container", flag="kubernetes-helper-ephemeral_storage-request")
    ] = ""
    helper_ephemeral_storage_request_overwrite_max_allowed: Annotated[
        str, Key("most a job may ask for", flag="kubernetes-helper-ephemeral_storage-request-overwrite-max-allowed")
    ] = ""
    pod_cpu_limit: Annotated[str, Key("CPU limit, whole pod")] = ""
    pod_cpu_limit_overwrite_max_allowed: Annotated[str, Key("most a job may ask for")] = ""
    pod_cpu_request: Annotated[str, Key("CPU request, whole pod")] = ""
    pod_cpu_request_overwrite_max_allowed: Annotated[str, Key("most a job may ask for")] = ""
    pod_memory_limit: Annotated[str, Key("memory limit, whole pod")] = ""
    pod_memory_limit_overwrite_max_allowed: Annotated[str, Key("most a job may ask for")] = ""
    pod_memory_request: Annotated[str, Key("memory request, whole pod")] = ""
    pod_memory_request_overwrite_max_allowed: Annotated[str, Key("most a job may ask for")] = ""
    allowed_images: Annotated[list[str], Key("patterns of images a job may use")] = []
    allowed_pull_policies: Annotated[list[str], Key("policies a job may name", choices=PULL_POLICIES)] = []
    allowed_services: Annotated[list[str], Key("patterns of services a job may use")] = []
    allowed_users: Annotated[list[str], Key("numeric users a job may pick")] = []
    allowed_groups: Annotated[list[str], Key("numeric groups a job may pick")] = []
    pull_policy: Annotated[
        Policies, Key("always, if-not-present, never; several = fallbacks", choices=PULL_POLICIES)
    ] = []
    node_selector: Annotated[dict[str, str], Key("labels of the node")] = {}
    node_selector_overwrite_allowed: Annotated[
        str,
        Key(
            "regular expression of KUBERNETES_NODE_SELECTOR_*",
            always=True,
            flag="kubernetes-node_selector_overwrite_allowed",
        ),
    ] = ""
    node_tolerations: Annotated[dict[str, str], Key("key[=value] → effect")] = {}
    node_tolerations_overwrite_allowed: Annotated[
        str,
        Key(
            "regular expression of KUBERNETES_NODE_TOLERATIONS_*",
            always=True,
            flag="kubernetes-node_tolerations_overwrite_allowed",
        ),
    ] = ""
    affinity: Annotated[Affinity | None, Key("node and pod affinity", flag="")] = None
    image_pull_secrets: Annotated[list[str], Key("names of pull secrets")] = []
    use_service_account_image_pull_secrets: Annotated[bool, Key("leave pull secrets to the service account")] = False
    helper_image: Annotated[str, Key("helper image")] = ""
    helper_image_flavor: Annotated[str, Key("alpine (default), ubuntu, ubi-fips")] = ""
    helper_image_autoset_arch_and_os: Annotated[bool, Key("helper image by the node's OS and arch")] = False
    pod_termination_grace_period_seconds: Annotated[
        int | None, Key("grace of the pod", flag="kubernetes-pod_termination_grace_period_seconds")
    ] = None
    cleanup_grace_period_seconds: Annotated[
        int | None, Key("grace on clean-up", flag="kubernetes-cleanup_grace_period_seconds")
    ] = None
    cleanup_resources_timeout: Annotated[
        Duration | None, Key("limit of the clean-up; default 5m", flag="kubernetes-cleanup_resources_timeout")
    ] = None
    poll_interval: Annotated[int, Key("seconds between looks at the pod; 0 = 3")] = 0
    poll_timeout: Annotated[int, Key("seconds until the pod must run; 0 = 180")] = 0
    resource_availability_check_max_attempts: Annotated[int, Key("0 = do not check, negative = 5")] = 0
    retry_limit: Annotated[int, Key("API retries; 0 = 5", env="KUBERNETES_REQUEST_RETRY_LIMIT")] = 0
    retry_backoff_max: Annotated[
        int, Key("longest back-off in ms; 0 = 2000", env="KUBERNETES_REQUEST_RETRY_BACKOFF_MAX")
    ] = 0
    retry_limits: Annotated[dict[str, int], Key("part of the error → retries")] = {}
    pod_labels: Annotated[dict[str, str], Key("pod labels, values expanded", env="")] = {}
    pod_labels_overwrite_allowed: Annotated[
        str,
        Key(
            "regular expression of KUBERNETES_POD_LABELS_*",
            always=True,
            flag="kubernetes-pod_labels_overwrite_allowed",
        ),
    ] = ""
    scheduler_name: Annotated[str, Key("scheduler")] = ""
    service_account: Annotated[str, Key("service account")] = ""
    service_account_overwrite_allowed: Annotated[
        str,
        Key(
            "regular expression of service accounts a job may choose",
            always=True,
            flag="kubernetes-service_account_overwrite_allowed",
        ),
    ] = ""
    automount_service_account_token: Annotated[bool | None, Key("absent = as the cluster")] = None
    pod_annotations: Annotated[dict[str, str], Key("pod annotations, values expanded", env="")] = {}
    pod_annotations_overwrite_allowed: Annotated[
        str,
        Key(
            "regular expression of KUBERNETES_POD_ANNOTATIONS_*",
            always=True,
            flag="kubernetes-pod_annotations_overwrite_allowed",
        ),
    ] = ""
    pod_security_context: Annotated[
        PodSecurityContext, Key("security context of the pod", prefix="pod-security-context", always=True)
    ] = fresh(default_factory=PodSecurityContext)
    init_permissions_container_security_context: Annotated[
        ContainerSecurityContext,
        Key(
            "security context of the init container", prefix="init_permissions_container_security_context", always=True
        ),
    ] = fresh(default_factory=ContainerSecurityContext)
    build_container_security_context: Annotated[
        ContainerSecurityContext,
        Key("security context of the build container", prefix="build_container_security_context", always=True),
    ] = fresh(default_factory=ContainerSecurityContext)
    helper_container_security_context: Annotated[
        ContainerSecurityContext,
        Key("security context of the helper container", prefix="helper_container_security_context", always=True),
    ] = fresh(default_factory=ContainerSecurityContext)
    service_container_security_context: Annotated[
        ContainerSecurityContext,
        Key("security context of service containers", prefix="service_container_security_context", always=True),
    ] = fresh(default_factory=ContainerSecurityContext)
    volumes: Annotated[Volumes, Key("volumes of the pod", always=True)] = fresh(default_factory=Volumes)
    host_aliases: Annotated[
        list[HostAlias], Key("host aliases as a JSON array", flag="kubernetes-host_aliases", env="")
    ] = []
    services: Annotated[list[ServiceConfig], Key("services of every job", flag="")] = []
    cap_add: Annotated[list[str], Key("capabilities to add")] = []
    cap_drop: Annotated[list[str], Key("capabilities to drop")] = []
    suspend_pvc_size: Annotated[str, Key("default 20Gi")] = ""
    suspend_pvc_storage_class: Annotated[str, Key("storage class of suspended data")] = ""
    dns_policy: Annotated[str, Key("empty = cluster-first", choices=_DNS_POLICIES)] = ""
    dns_config: Annotated[DnsConfig, Key("DNS of the pod", always=True)] = fresh(default_factory=DnsConfig)
    container_lifecycle: Annotated[ContainerLifecycle | None, Key("hooks of the containers")] = None
    priority_class_name: Annotated[str, Key("PriorityClass", flag="kubernetes-priority_class_name")] = ""
    pod_spec: Annotated[list[PodSpec], Key("patches of the pod")] = []
    logs_base_dir: Annotated[str, Key("parent of the job's log directory")] = ""
    scripts_base_dir: Annotated[str, Key("parent of the job's script directory")] = ""
    print_pod_warning_events: Annotated[bool | None, Key("absent = true")] = None
    pod_disruption_budget: Annotated[bool | None, Key("absent = false")] = None
    autoscaler: Annotated[KubernetesAutoscaler | None, Key("pause pods that hold room")] = None
