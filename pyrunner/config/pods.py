"""Sub-tables of `[runners.kubernetes]` (facts/config-toml.md 14, "Kubernetes sub-tables")."""

from __future__ import annotations

from typing import Annotated

from pyrunner.config.keys import Key
from pyrunner.config.machines import AutoscalerPolicy
from pyrunner.config.table import Table, fresh

_OPERATOR = "In, NotIn, Exists, DoesNotExist, Gt or Lt"


class HostPathVolume(Table):
    """`[[…volumes.host_path]]`."""

    name: Annotated[str, Key("name", always=True)] = ""
    mount_path: Annotated[str, Key("path in the container", always=True)] = ""
    sub_path: Annotated[str, Key("path in the volume")] = ""
    read_only: Annotated[bool, Key("mounted read-only")] = False
    host_path: Annotated[str, Key("path on the node; default mount_path")] = ""
    mount_propagation: Annotated[str | None, Key("mount propagation")] = None


class PvcVolume(Table):
    """`[[…volumes.pvc]]`."""

    name: Annotated[str, Key("claim", always=True)] = ""
    mount_path: Annotated[str, Key("path in the container", always=True)] = ""
    sub_path: Annotated[str, Key("path in the volume")] = ""
    read_only: Annotated[bool, Key("mounted read-only")] = False
    mount_propagation: Annotated[str | None, Key("mount propagation")] = None


class ItemsVolume(Table):
    """`[[…volumes.config_map]]` and `[[…volumes.secret]]`."""

    name: Annotated[str, Key("config map or secret", always=True)] = ""
    mount_path: Annotated[str, Key("path in the container", always=True)] = ""
    sub_path: Annotated[str, Key("path in the volume")] = ""
    read_only: Annotated[bool, Key("mounted read-only")] = False
    items: Annotated[dict[str, str], Key("key → path")] = {}


class EmptyDirVolume(Table):
    """`[[…volumes.empty_dir]]`."""

    name: Annotated[str, Key("name", always=True)] = ""
    mount_path: Annotated[str, Key("path in the container", always=True)] = ""
    sub_path: Annotated[str, Key("path in the volume")] = ""
    medium: Annotated[str, Key("empty = disk", choices=("Memory",))] = ""
    size_limit: Annotated[str, Key("largest size")] = ""
    mount_propagation: Annotated[str | None, Key("mount propagation")] = None


class CsiVolume(Table):
    """`[[…volumes.csi]]`."""

    name: Annotated[str, Key("name", always=True)] = ""
    mount_path: Annotated[str, Key("path in the container", always=True)] = ""
    sub_path: Annotated[str, Key("path in the volume")] = ""
    driver: Annotated[str, Key("CSI driver", always=True)] = ""
    fs_type: Annotated[str, Key("file system", always=True)] = ""
    read_only: Annotated[bool, Key("mounted read-only")] = False
    volume_attributes: Annotated[dict[str, str], Key("attributes for the driver")] = {}


class NfsVolume(Table):
    """`[[…volumes.nfs]]`."""

    name: Annotated[str, Key("name; required", always=True)] = ""
    mount_path: Annotated[str, Key("path in the container; required", always=True)] = ""
    server: Annotated[str, Key("NFS server; required", always=True)] = ""
    path: Annotated[str, Key("exported path; required", always=True)] = ""
    sub_path: Annotated[str, Key("path in the volume")] = ""
    read_only: Annotated[bool, Key("mounted read-only")] = False


class Volumes(Table):
    """`[runners.kubernetes.volumes]`."""

    host_path: Annotated[list[HostPathVolume], Key("directories of the node")] = []
    pvc: Annotated[list[PvcVolume], Key("persistent volume claims")] = []
    config_map: Annotated[list[ItemsVolume], Key("config maps")] = []
    secret: Annotated[list[ItemsVolume], Key("secrets")] = []
    empty_dir: Annotated[list[EmptyDirVolume], Key("empty directories")] = []
    csi: Annotated[list[CsiVolume], Key("CSI volumes")] = []
    nfs: Annotated[list[NfsVolume], Key("NFS exports")] = []


class SecurityProfile(Table):
    """`seccomp_profile` and `app_armor_profile`."""

    type: Annotated[str, Key("profile", choices=("RuntimeDefault", "Localhost", "Unconfined"))] = ""
    localhost_profile: Annotated[str, Key("file of the profile, for Localhost")] = ""


class PodSecurityContext(Table):
    """`[runners.kubernetes.pod_security_context]`: nothing is sent if all is absent."""

    fs_group: Annotated[int | None, Key("group of volumes")] = None
    run_as_group: Annotated[int | None, Key("group id")] = None
    run_as_non_root: Annotated[bool | None, Key("refuse to run as root")] = None
    run_as_user: Annotated[int | None, Key("user id")] = None
    supplemental_groups: Annotated[list[int], Key("additional group ids", env="")] = []
    selinux_type: Annotated[str, Key("SELinux type", env="")] = ""
    seccomp_profile: Annotated[SecurityProfile, Key("seccomp", prefix="seccomp_profile", always=True)] = fresh(
        default_factory=SecurityProfile
    )
    app_armor_profile: Annotated[SecurityProfile, Key("AppArmor", prefix="app_armor_profile", always=True)] = fresh(
        default_factory=SecurityProfile
    )


class Capabilities(Table):
    """`capabilities` of a container."""

    add: Annotated[list[str], Key("capabilities to add")] = []
    drop: Annotated[list[str], Key("capabilities to drop")] = []


class ContainerSecurityContext(Table):
    """`[runners.kubernetes.…_container_security_context]`."""

    capabilities: Annotated[Capabilities, Key("capabilities", prefix="capabilities", always=True)] = fresh(
        default_factory=Capabilities
    )
    privileged: Annotated[bool | None, Key("privileged")] = None
    run_as_user: Annotated[int | None, Key("user id")] = None
    run_as_group: Annotated[int | None, Key("group id")] = None
    run_as_non_root: Annotated[bool | None, Key("refuse to run as root")] = None
    read_only_root_filesystem: Annotated[bool | None, Key("root file system is read-only")] = None
    allow_privilege_escalation: Annotated[bool | None, Key("allow gaining privileges")] = None
    selinux_type: Annotated[str, Key("SELinux type", env="")] = ""
    proc_mount: Annotated[str, Key("default or unmasked")] = ""
    seccomp_profile: Annotated[SecurityProfile, Key("seccomp", prefix="seccomp_profile", always=True)] = fresh(
        default_factory=SecurityProfile
    )
    app_armor_profile: Annotated[SecurityProfile, Key("AppArmor", prefix="app_armor_profile", always=True)] = fresh(
        default_factory=SecurityProfile
    )


class MatchExpression(Table):
    """One condition of a selector."""

    key: Annotated[str, Key("label")] = ""
    operator: Annotated[str, Key(_OPERATOR)] = ""
    values: Annotated[list[str], Key("values")] = []


class NodeSelectorTerm(Table):
    """Conditions on a node."""

    match_expressions: Annotated[list[MatchExpression], Key("by label")] = []
    match_fields: Annotated[list[MatchExpression], Key("by field")] = []


class NodeSelector(Table):
    """`required_during_scheduling_ignored_during_execution` of node_affinity."""

    node_selector_terms: Annotated[list[NodeSelectorTerm], Key("alternatives")] = []


class PreferredNode(Table):
    """`preferred_during_scheduling_ignored_during_execution` of node_affinity."""

    weight: Annotated[int, Key("1 to 100", always=True)] = 0
    preference: Annotated[NodeSelectorTerm | None, Key("conditions")] = None


class NodeAffinity(Table):
    """`affinity.node_affinity`."""

    required_during_scheduling_ignored_during_execution: Annotated[
        NodeSelector | None, Key("what a node must have")
    ] = None
    preferred_during_scheduling_ignored_during_execution: Annotated[
        list[PreferredNode], Key("what a node should have")
    ] = []


class LabelSelector(Table):
    """`label_selector` and `namespace_selector`."""

    match_labels: Annotated[dict[str, str], Key("labels")] = {}
    match_expressions: Annotated[list[MatchExpression], Key("conditions")] = []


class PodAffinityTerm(Table):
    """Conditions on other pods."""

    label_selector: Annotated[LabelSelector | None, Key("which pods")] = None
    namespaces: Annotated[list[str], Key("in which namespaces")] = []
    topology_key: Annotated[str, Key("label of the node that counts as a place")] = ""
    namespace_selector: Annotated[LabelSelector | None, Key("in which namespaces, by label")] = None
    match_label_keys: Annotated[list[str], Key("keys that must be equal")] = []
    mismatch_label_keys: Annotated[list[str], Key("keys that must differ")] = []


class WeightedPodAffinityTerm(Table):
    """`preferred_during_scheduling_ignored_during_execution` of pod affinity."""

    weight: Annotated[int, Key("1 to 100", always=True)] = 0
    pod_affinity_term: Annotated[PodAffinityTerm | None, Key("conditions")] = None


class PodAffinity(Table):
    """`affinity.pod_affinity` and `affinity.pod_anti_affinity`."""

    required_during_scheduling_ignored_during_execution: Annotated[
        list[PodAffinityTerm], Key("what must be near, or must not")
    ] = []
    preferred_during_scheduling_ignored_during_execution: Annotated[
        list[WeightedPodAffinityTerm], Key("what should be near, or should not")
    ] = []


class Affinity(Table):
    """`[runners.kubernetes.affinity]`."""

    node_affinity: Annotated[NodeAffinity | None, Key("nodes")] = None
    pod_affinity: Annotated[PodAffinity | None, Key("near pods")] = None
    pod_anti_affinity: Annotated[PodAffinity | None, Key("away from pods")] = None


class HostAlias(Table):
    """`[[runners.kubernetes.host_aliases]]`."""

    ip: Annotated[str, Key("address", always=True)] = ""
    hostnames: Annotated[list[str], Key("names", always=True)] = []


class DnsOption(Table):
    """`[[runners.kubernetes.dns_config.options]]`."""

    name: Annotated[str, Key("name", always=True)] = ""
    value: Annotated[str | None, Key("value")] = None


class DnsConfig(Table):
    """`[runners.kubernetes.dns_config]`."""

    nameservers: Annotated[list[str], Key("addresses of DNS servers")] = []
    options: Annotated[list[DnsOption], Key("resolver options")] = []
    searches: Annotated[list[str], Key("search domains")] = []


class ExecAction(Table):
    """A hook that runs a command."""

    command: Annotated[list[str], Key("command")] = []


class HttpHeader(Table):
    """A header of an HTTP hook."""

    name: Annotated[str, Key("name")] = ""
    value: Annotated[str, Key("value")] = ""


class HttpGetAction(Table):
    """A hook that makes a request."""

    host: Annotated[str, Key("host")] = ""
    http_headers: Annotated[list[HttpHeader], Key("headers")] = []
    path: Annotated[str, Key("path")] = ""
    port: Annotated[int, Key("port", always=True)] = 0
    scheme: Annotated[str, Key("http or https")] = ""


class TcpSocketAction(Table):
    """A hook that opens a connection."""

    host: Annotated[str, Key("host")] = ""
    port: Annotated[int, Key("port", always=True)] = 0


class LifecycleHandler(Table):
    """One of three kinds of hook."""

    exec: Annotated[ExecAction | None, Key("command")] = None
    http_get: Annotated[HttpGetAction | None, Key("request")] = None
    tcp_socket: Annotated[TcpSocketAction | None, Key("connection")] = None


class ContainerLifecycle(Table):
    """`[runners.kubernetes.container_lifecycle]`."""

    post_start: Annotated[LifecycleHandler | None, Key("after the start")] = None
    pre_stop: Annotated[LifecycleHandler | None, Key("before the stop")] = None


class PodSpec(Table):
    """`[[runners.kubernetes.pod_spec]]`: a patch of the pod."""

    name: Annotated[str, Key("name", always=True)] = ""
    patch_path: Annotated[str, Key("file with the patch; not with patch", always=True)] = ""
    patch: Annotated[str, Key("YAML or JSON", always=True)] = ""
    patch_type: Annotated[str, Key("default strategic", always=True, choices=("json", "merge", "strategic"))] = ""


class KubernetesAutoscaler(Table):
    """`[runners.kubernetes.autoscaler]`: pause pods that hold room for jobs."""

    max_pause_pods: Annotated[int, Key("0 = unlimited", always=True)] = 0
    pause_pod_image: Annotated[str, Key("default registry.k8s.io/pause:3.10")] = ""
    pause_pod_priority_class_name: Annotated[str, Key("PriorityClass of pause pods")] = ""
    policy: Annotated[list[AutoscalerPolicy], Key("scaling by time of day")] = []
    pause_pod_image_pull_secrets: Annotated[list[str], Key("names of pull secrets")] = []
