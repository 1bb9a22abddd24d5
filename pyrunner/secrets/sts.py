"""The Security Token Service of AWS: temporary credentials for a web identity."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from urllib.parse import urlencode

from pyrunner.base.cancel import CancelToken
from pyrunner.secrets.errors import SecretError, SecretOutageError
from pyrunner.secrets.exchange import Caller, Request
from pyrunner.secrets.sigv4 import Credentials

_VERSION = "2011-06-15"


@dataclass(frozen=True, kw_only=True)
class WebIdentity:
    """A role, and the token that may assume it."""

    role_arn: str
    session_name: str
    token: str = field(repr=False)


def assume_role(caller: Caller, url: str, identity: WebIdentity, cancel: CancelToken) -> Credentials:
    """Credentials of the role (``AssumeRoleWithWebIdentity``); the token is the only proof, nothing is signed.

    Raises:
        SecretError: the service refused.
        SecretOutageError: it gave no usable answer.
    """
    caller.hide(identity.token)
    form = {
        "Action": "AssumeRoleWithWebIdentity",
        "Version": _VERSION,
        "RoleArn": identity.role_arn,
        "RoleSessionName": identity.session_name,
        "WebIdentityToken": identity.token,
    }
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    response = caller.call(Request(method="POST", url=url, headers=headers, body=urlencode(form).encode()), cancel)
    if response.status != 200:
        raise SecretError(caller.failure(response))
    found = [_element(response.body, name) for name in (b"AccessKeyId", b"SecretAccessKey", b"SessionToken")]
    if not all(found):
        raise SecretOutageError(f"{caller.failure(response)}: the answer has no credentials")
    credentials = Credentials(key_id=found[0], secret=found[1], session_token=found[2])
    caller.hide(credentials.secret, credentials.session_token)
    return credentials


def _element(body: bytes, name: bytes) -> str:
    """Text of an XML element; three flat texts need no parser, and a parser of a stranger's XML is a risk."""
    match = re.search(rb"<%s>\s*([^<]*?)\s*</%s>" % (name, name), body)
    return html.unescape(match.group(1).decode("utf-8", "replace")) if match else ""
