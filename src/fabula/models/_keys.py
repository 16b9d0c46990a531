"""Keys: from the environment or the system's keyring, never from a file of ours, never into one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from fabula.errors import InputError

SERVICE = "fabula"
"""The keyring's name for us; the user there is the host (and port) of the address."""


def _host(base_url: str) -> str:
    parts = urlsplit(base_url)
    return f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"


def find_key(base_url: str, environment: Mapping[str, str] | None = None) -> str | None:
    """The key for an address, or None.

    FABULA_API_KEY first; then OPENAI_API_KEY, but only for OpenAI's own address (or the one that OPENAI_BASE_URL names), so that it is
    never sent to anyone else; then the keyring. A keyring that is absent or locked counts as empty: a missing key shows as AuthFailed.
    """
    environment = os.environ if environment is None else environment
    if environment.get("FABULA_API_KEY"):
        return environment["FABULA_API_KEY"]
    own = environment.get("OPENAI_BASE_URL", "")
    host = _host(base_url)
    if environment.get("OPENAI_API_KEY") and (host == "api.openai.com" or (own and _host(own) == host)):
        return environment["OPENAI_API_KEY"]
    import keyring
    from keyring.errors import KeyringError

    try:
        return keyring.get_password(SERVICE, host)
    except KeyringError:
        return None


def store_key(base_url: str, key: str) -> None:
    """Keep a key in the system's keyring.

    Raises:
        InputError: this machine has no keyring, or it is locked.
    """
    import keyring
    from keyring.errors import KeyringError

    try:
        keyring.set_password(SERVICE, _host(base_url), key)
    except KeyringError:
        raise InputError(
            f"The key for {_host(base_url)} cannot be kept: this machine has no keyring that is open.", "Set FABULA_API_KEY instead."
        ) from None


def forget_key(base_url: str) -> None:
    """Take a key out of the keyring; nothing happens if there is none."""
    import keyring
    from keyring.errors import KeyringError

    try:
        keyring.delete_password(SERVICE, _host(base_url))
    except KeyringError:
        return
