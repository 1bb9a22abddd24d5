"""The engine's volumes and networks."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any
from urllib.parse import quote

from pyrunner.executors.docker.engine.errors import NotFoundError
from pyrunner.executors.docker.engine.records import Labels, Listed, label_filter, moment
from pyrunner.executors.docker.engine.transport import Transport


class StoreCalls:
    """Part of `Engine`."""

    _http: Transport

    def create_volume(
        self, name: str, labels: Labels, driver: str = "", options: Mapping[str, str] | None = None
    ) -> None:
        """Create a named volume; one that exists stays as it is."""
        body = {"Name": name, "Labels": dict(labels), "Driver": driver or "local", "DriverOpts": dict(options or {})}
        self._http.call("post", "/volumes/create", body=body)

    def volume_labels(self, name: str) -> Labels | None:
        """Labels of a volume; None when there is no such volume."""
        try:
            return dict(self._http.call("get", f"/volumes/{quote(name)}").get("Labels") or {})
        except NotFoundError:
            return None

    def remove_volume(self, name: str) -> None:
        """Remove it; one that is not there is fine."""
        try:
            self._http.call("delete", f"/volumes/{quote(name)}", params={"force": "true"})
        except NotFoundError:
            return

    def volumes(self, labels: Labels) -> list[Listed]:
        """All that carry `labels`."""
        told = self._http.call("get", "/volumes", params={"filters": label_filter(labels)})
        return [
            Listed(
                id=item["Name"],
                name=item["Name"],
                labels=item.get("Labels") or {},
                created=moment(item.get("CreatedAt")),
            )
            for item in told.get("Volumes") or ()
        ]

    def volume_usage(self) -> dict[str, tuple[int, bool]]:
        """Size in bytes and whether a container has it, of every volume; the engine looks through all their files."""
        told = self._http.call("get", "/system/df", params={"type": "volume"})
        usage = ((item["Name"], item.get("UsageData") or {}) for item in told.get("Volumes") or ())
        return {name: (max(0, data.get("Size", 0)), data.get("RefCount", 0) > 0) for name, data in usage}

    def create_network(self, name: str, payload: Mapping[str, Any]) -> str:
        """Create a network; its id."""
        body = {"CheckDuplicate": True, **payload, "Name": name}
        return str(self._http.call("post", "/networks/create", body=body)["Id"])

    def remove_network(self, network: str) -> None:
        """Remove it; one that is not there is fine."""
        try:
            self._http.call("delete", f"/networks/{quote(network)}")
        except NotFoundError:
            return

    def disconnect(self, network: str, container: str) -> None:
        """Take a container off a network by force; one that is not there is fine."""
        try:
            body = {"Container": container, "Force": True}
            self._http.call("post", f"/networks/{quote(network)}/disconnect", body=body)
        except NotFoundError:
            return

    def network_containers(self, network: str) -> list[str]:
        """Ids of the containers on a network."""
        try:
            return list(self._http.call("get", f"/networks/{quote(network)}").get("Containers") or {})
        except NotFoundError:
            return []

    def network_gateway(self, network: str) -> str:
        """Where containers on a bridge reach this engine's machine; empty when the network has no address there."""
        for settings in self._http.call("get", f"/networks/{quote(network)}")["IPAM"].get("Config") or ():
            # The engine takes the first address of the subnet, and does not always say so.
            return str(settings.get("Gateway") or next(ip_network(settings["Subnet"]).hosts()))
        return ""

    def networks(self, labels: Labels) -> list[Listed]:
        """All that carry `labels`."""
        told = self._http.call("get", "/networks", params={"filters": label_filter(labels)})
        return [
            Listed(
                id=item["Id"],
                name=item["Name"],
                labels=item.get("Labels") or {},
                created=moment(item.get("Created")),
            )
            for item in told
        ]
