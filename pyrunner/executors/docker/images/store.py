"""Gets the images of a job: present ones, pulled ones, by policy (facts/executors.md 6.8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import SystemFailure
from pyrunner.executors.docker.auth.book import CredentialBook
from pyrunner.executors.docker.engine.engine import Engine
from pyrunner.executors.docker.engine.errors import EngineError, EngineUnreachableError, NotFoundError
from pyrunner.executors.docker.engine.records import ImageFacts
from pyrunner.executors.docker.images.policies import PullPolicy, shown
from pyrunner.executors.docker.images.pull import Puller
from pyrunner.executors.docker.images.pull_errors import failure_reason
from pyrunner.executors.docker.images.reference import is_id, with_tag
from pyrunner.executors.protocol import TraceWriter


@dataclass(frozen=True, kw_only=True)
class PresentImage:
    """An image that containers can be made from."""

    #: As the job or the config names it.
    name: str
    facts: ImageFacts

    @property
    def runnable(self) -> str:
        """What a container is created from: the first digest, else the id."""
        return self.facts.digests[0] if self.facts.digests else self.facts.id


class ImageStore:
    """The images of one job; used by the job's thread."""

    def __init__(
        self,
        engine: Engine,
        credentials: CredentialBook,
        trace: TraceWriter,
        token: CancelToken,
        puller: Puller | None = None,
    ) -> None:
        self._engine = engine
        self._credentials = credentials
        self._trace = trace
        self._token = token
        self._puller = puller or Puller(engine, trace, token)
        #: Used by this job already: name and platform → id.
        self._used: dict[tuple[str, str], str] = {}

    def obtain(self, name: str, policies: Sequence[PullPolicy], platform: str = "") -> PresentImage:
        """The image `name`, by the first policy that works.

        Raises:
            SystemFailure: ``runner_configuration_error`` when it is not there or access is denied,
                ``runner_external_dependency_failure`` when the registry does not answer, else ``image_pull_failure``.
            EngineUnreachableError: the engine does not answer.
            BaseException: the token's cause, when cancelled.
        """
        self._trace.plain(f"Using effective pull policy of {shown(policies)} for container {name}")
        last: EngineError | None = None
        for attempt, policy in enumerate(policies, 1):
            if attempt > 1:
                self._trace.plain(f'Attempt #{attempt}: Trying "{policy}" pull policy')
            try:
                return self._told(name, platform, self._by(policy, name, platform))
            except EngineUnreachableError:
                raise
            except EngineError as error:
                self._trace.warning(f'Failed to pull image with policy "{policy}": {error}')
                last = error
        message = f'failed to pull image "{name}" with specified policies {shown(policies)}: {last}'
        raise SystemFailure(message, reason=failure_reason(str(last)))

    def present(self, name: str) -> PresentImage | None:
        """The image if the engine has it, whatever the policies say."""
        facts = self._inspect(with_tag(name))
        return PresentImage(name=name, facts=facts) if facts is not None else None

    def _by(self, policy: PullPolicy, name: str, platform: str) -> ImageFacts:
        self._token.raise_if_cancelled()
        reference = with_tag(name)
        if policy is PullPolicy.NEVER or is_id(name):
            return self._engine.image(reference)
        found = self._inspect(reference)
        if found is not None:
            if self._used.get((reference, platform)) == found.id:
                return found
            if policy is PullPolicy.IF_NOT_PRESENT:
                self._trace.plain(f'Using locally found image version due to "{policy}" pull policy')
                return found
        return self._pull(name, reference, platform)

    def _inspect(self, reference: str) -> ImageFacts | None:
        try:
            return self._engine.image(reference)
        except NotFoundError:
            return None

    def _pull(self, name: str, reference: str, platform: str) -> ImageFacts:
        credentials = self._credentials.for_image(reference)
        if credentials is not None:
            self._trace.plain(f"Authenticating with credentials from {credentials.source}")
        self._trace.plain(f"Pulling docker image {name}{f' for platform {platform}' if platform else ''} ...")
        self._puller.pull(reference, credentials, platform)
        return self._engine.image(reference)

    def _told(self, name: str, platform: str, facts: ImageFacts) -> PresentImage:
        self._used[with_tag(name), platform] = facts.id
        if name != facts.id:
            digest = f" with digest {facts.digests[0]}" if facts.digests else ""
            self._trace.plain(f"Using docker image {facts.id} for {name}{digest} ...")
        return PresentImage(name=name, facts=facts)
