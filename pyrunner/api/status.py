"""The status text of an answer, with what the server says about an error (facts/runner-api.md 1.6). Light."""

from __future__ import annotations

import re

from pyrunner.api.urls import clean_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.api.exchange import Response

_LIMIT = 1000


def status_text(response: Response) -> str:
    """``<METHOD> <clean url>: <code> <reason>`` and, when it says more, `` (<message>)``."""
    text = f"{response.method} {clean_url(response.url)}: {response.status_line}"
    message = "" if response.status < 300 else _message(response)
    return text if message in ("", response.status_line) else f"{text} ({message})"


def _message(response: Response) -> str:
    if response.is_json:
        return _one_line(json_message(response.body))
    if response.header("Content-Type").partition(";")[0].strip().lower() in ("application/xml", "text/xml"):
        return _one_line(_xml_message(response.body))
    return ""


def json_message(body: bytes) -> str:
    """``message`` of an error body: a text, or ``{field: [texts]}`` as ``field: a; b, field2: c``."""
    import json

    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    message = content.get("message") if isinstance(content, dict) else None
    if isinstance(message, dict):
        return ", ".join(f"{field}: {_joined(texts)}" for field, texts in message.items())
    return message if isinstance(message, str) else ""


def _xml_message(body: bytes) -> str:
    """``Code: Message`` of an object storage's error; a parser for two texts of a stranger would be a risk."""
    code, message = (re.search(rb"<%s>([^<]*)</%s>" % (tag, tag), body[:65536]) for tag in (b"Code", b"Message"))
    texts = [found.group(1).decode("utf-8", "replace") for found in (code, message) if found]
    return ": ".join(text for text in texts if text)


def _joined(texts: object) -> str:
    return "; ".join(str(text) for text in texts) if isinstance(texts, list) else str(texts)


def _one_line(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text[:_LIMIT])
