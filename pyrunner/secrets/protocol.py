"""What a secret source is. Third parties add their own in the entry point group ``pyrunner.secrets``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from pyrunner.base.cancel import CancelToken

#: Replaces ``$name`` and ``${name}`` by values of the job's variables.
Expand = Callable[[str], str]


class SecretSource(Protocol):
    """Reads secrets of one provider for one job.

    A source is made for a job by calling the entry point without arguments, and serves all secrets of that job which
    name its provider, one after the other and from one thread. So it may keep a login between two secrets.
    """

    def resolve(self, spec: Mapping[str, Any], expand: Expand, cancel: CancelToken) -> str:
        """The value of the secret that `spec`, the provider's object in the payload, names.

        Args:
            spec: as the server sent it: strings are not expanded yet.
            expand: for the strings that may name variables.
            cancel: must end every wait; its cause is raised then.

        Raises:
            SecretMissingError: there is no such secret.
            SecretConfigError: the spec is wrong, or the secret may not be read.
            SecretOutageError: the provider gave no usable answer.
            SecretError: any other failure. No message may hold a secret, a token or a key.
        """
        ...

    def close(self) -> None:
        """Give back logins and connections. Called once, also after a failure or a cancel; raises nothing."""
        ...


class Say(Protocol):
    """Where the lines for the job's log go: the runner's stream of a trace."""

    def plain(self, text: str) -> None:
        """Print a line."""
        ...

    def warning(self, text: str) -> None:
        """Print ``WARNING: text`` in yellow."""
        ...
