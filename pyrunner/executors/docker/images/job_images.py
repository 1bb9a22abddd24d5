"""The images of one job: what it may use, by which policies, and getting them (facts/executors.md 6.3, 6.8)."""

from __future__ import annotations

from pyrunner.api.wire import Image
from pyrunner.executors.docker.auth.sources import credential_book
from pyrunner.executors.docker.context import DockerJob
from pyrunner.executors.docker.engine.engine import Engine
from pyrunner.executors.docker.images.allowed import check_allowed
from pyrunner.executors.docker.images.helper_image import official_helper_image
from pyrunner.executors.docker.images.options import allowed_user, docker_option
from pyrunner.executors.docker.images.policies import effective_policies
from pyrunner.executors.docker.images.prebuilt import load_prebuilt
from pyrunner.executors.docker.images.store import ImageStore, PresentImage


class JobImages:
    """Build, service and helper images. All methods raise `SystemFailure`, or the token's cause when cancelled."""

    def __init__(self, engine: Engine, job: DockerJob) -> None:
        self._engine = engine
        self._job = job
        self._store = ImageStore(engine, credential_book(job), job.trace, job.token)

    def check_build(self, name: str) -> None:
        """Refuse a build image, pull policies or a user that the config does not allow, before anything is made."""
        docker = self._job.docker
        always = {self._job.variables.expand(docker.image)}
        check_allowed("images", name, docker.allowed_images, always, self._job.trace)
        effective_policies(docker, name, self._requested)
        self.user()

    def build(self, name: str) -> PresentImage:
        """The build container's image."""
        policies = effective_policies(self._job.docker, name, self._requested)
        return self._store.obtain(name, policies, self.platform)

    def service(self, definition: Image, reference: str) -> PresentImage:
        """A service's image; `reference` is its expanded name with a tag."""
        job, docker = self._job, self._job.docker
        always = {job.variables.expand(entry.name) for entry in docker.services}
        check_allowed("services", job.variables.expand(definition.name), docker.allowed_services, always, job.trace)
        policies = effective_policies(docker, reference, definition.pull_policy)
        return self._store.obtain(reference, policies, docker_option(definition, "platform", job.variables))

    def helper(self, shell_name: str) -> PresentImage:
        """The helper container's image: the config's, else the official one: present, from an archive, or pulled."""
        job, docker = self._job, self._job.docker
        chosen = job.variables.expand(docker.helper_image)
        if chosen and self._engine.facts.os == "windows":
            # No need to know this Windows when its image is not asked for.
            job.trace.plain(f"Using helper image:  {chosen}")
            return self._store.obtain(chosen, effective_policies(docker, chosen))
        official = official_helper_image(self._engine.facts, docker.helper_image_flavor, pwsh=shell_name == "pwsh")
        if chosen:
            job.trace.plain(f"Using helper image:  {chosen}  (overridden, default would be  {official.name} )")
            return self._store.obtain(chosen, effective_policies(docker, chosen))
        present = self._store.present(official.name)
        if present is None and load_prebuilt(self._engine, official):
            present = self._store.present(official.name)
        if present is not None:
            return present
        job.trace.plain(f"Using helper image:  {official.name}")
        return self._store.obtain(official.name, effective_policies(docker, official.name))

    def user(self) -> str:
        """Of the build container; empty = the image's own."""
        return allowed_user(self._job.docker, docker_option(self._job.job.image, "user", self._job.variables))

    @property
    def platform(self) -> str:
        """Of the build container; empty = the engine's own."""
        return docker_option(self._job.job.image, "platform", self._job.variables)

    @property
    def _requested(self) -> list[str]:
        return list(self._job.job.image.pull_policy) if self._job.job.image else []
