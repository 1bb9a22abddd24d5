"""Gets the images of a job: present ones, pulled ones, by policy (facts/executors.md 6.8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import SystemFailure
from pyrunner.executors.docker.auth.book import CredentialBook
from pyrunner.executors.docker.engine.engine import Engine
from pyrunner.executors.docker.engine.errors import EngineError, NotFoundError
from pyrunner.executors.docker.engine.records import ImageFacts
from pyrunner.executors.docker.images.policies import PullPolicy
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
    """The images of one job."""

    def __init__(self, engine: Engine, credentials: CredentialBook, trace: TraceWriter, token: CancelToken) -> None:
        self._engine = engine
        self._credentials = credentials
        self._trace = trace
        self._token = token
        #: Pulled for this job already: name → id.
        self._pulled: dict[str, str] = {}

    def obtain(self, name: str, policies: Sequence[PullPolicy], platform: str = "") -> PresentImage:
        """The image `name`, by the first policy that works.

        Raises:
            SystemFailure: ``runner_configuration_error`` when it is not there or access is denied,
                ``runner_external_dependency_failure`` when the registry does not answer, else ``image_pull_failure``.
            BaseException: the token's cause, when cancelled.
        """
        self._trace.plain(f"Using effective pull policy of {_shown(policies)} for container {name}")
        failures: list[SystemFailure] = []
        for attempt, policy in enumerate(policies, 1):
            self._token.raise_if_cancelled()
            if attempt > 1:
                self._trace.plain(f'Attempt #{attempt}: Trying "{policy}" pull policy')
            try:
                return self._told(name, self._by(policy, name, platform))
            except EngineError as error:
                self._token.raise_if_cancelled()
                self._trace.warning(f'Failed to pull image with policy "{policy}": {error}')
                failures.append(error)
        last = failures[-1]
        raise SystemFailure(
            f'failed to pull image "{name}" with specified policies {_shown(policies)}: {last}',
            reason=last.reason if last.reason != "runner_system_failure" else failure_reason(str(last)),
        )

    def _by(self, policy: PullPolicy, name: str, platform: str) -> ImageFacts:
        reference = with_tag(name)
        present = self._present(reference)
        if policy is PullPolicy.NEVER or is_id(name):
            return present or self._engine.image(reference)
        if present is not None:
            if self._pulled.get(reference) == present.id:
                return present
            if policy is PullPolicy.IF_NOT_PRESENT:
                self._trace.plain(f'Using locally found image version due to "{policy}" pull policy')
                return present
        return self._pull(name, reference, platform)

    def _present(self, reference: str) -> ImageFacts | None:
        try:
            return self._engine.image(reference)
        except NotFoundError:
            return None

    def _pull(self, name: str, reference: str, platform: str) -> ImageFacts:
        credentials = self._credentials.for_image(reference)
        if credentials is not None:
            self._trace.plain(f"Authenticating with credentials from {credentials.source}")
        self._trace.plain(f"Pulling docker image {name}{f' for platform {platform}' if platform else ''} ...")
        auth = credentials.auth() if credentials is not None else None
        with self._engine.pull(reference, auth, platform) as progress:
            for step in progress:
                self._token.raise_if_cancelled()
                if error := step.get("error"):
                    raise EngineError(str(error), reason=failure_reason(str(error)))
        facts = self._engine.image(reference)
        self._pulled[reference] = facts.id
        return facts

    def _told(self, name: str, facts: ImageFacts) -> PresentImage:
        if name != facts.id:
            digest = f" with digest {facts.digests[0]}" if facts.digests else ""
            self._trace.plain(f"Using docker image {facts.id} for {name}{digest} ...")
        return PresentImage(name=name, facts=facts)


def _shown(policies: Sequence[PullPolicy]) -> str:
    return f"[{' '.join(policies)}]"
