"""OAuth 2.0 for spiders: a token by client credentials or a refresh token (RFC 6749, 4.4 and 6), asked for anew before it ends.

Place in the flow: :meth:`gossamer.Spider.oauth2` registers :class:`TokenGrant` as the log-in of a host; the token that it gets
goes with the requests to that site (:meth:`gossamer.spiders.logins.Session.bear`).
"""

import base64
from typing import Any
from urllib.parse import quote_plus

from gossamer.fetcher.authentication import secret_of
from gossamer.spiders.logins import Session
from gossamer.values.errors import UnreadableUrl, UsageError
from gossamer.values.request import Request
from gossamer.values.url import canonical, host_of, scheme_of

#: Hosts that a token may be asked of without TLS: nothing listens between (RFC 8252, 8.3).
_LOOPBACK = frozenset(("127.0.0.1", "[::1]", "localhost"))

#: Characters of what a server says of a refusal that are told.
_TOLD = 200


class TokenGrant:
    """Asks a server for tokens. It reads the secret each time, so that the secret stays only where the person keeps
    it."""

    def __init__(self, token_url: str, client: str, secret: str, scope: str, refresh_token: str) -> None:
        """Check what a person gave; the two secrets are references, `$NAME` or `@FILE`. Raises UsageError: the URL is not
        valid, or a secret must not be sent to it. Raises SettingError: a secret is missing."""
        try:
            self.url = canonical(token_url)
        except UnreadableUrl as error:
            raise UsageError(f"token_url={token_url!r}: {error}") from None
        if scheme_of(self.url) != "https" and host_of(self.url) not in _LOOPBACK:
            raise UsageError(f"token_url={token_url!r}: a secret is sent over https alone")
        self._client = client
        self._secret = secret
        self._scope = scope
        self._refresh = refresh_token
        self._newer = ""
        """A refresh token that the server gave in the place of the one before."""
        for reference in filter(None, (secret, refresh_token)):
            secret_of(reference)

    def __repr__(self) -> str:
        return f"<TokenGrant of {self.url}>"

    async def enter(self, session: Session) -> None:
        """Ask for a token, and bear it. Raises UsageError: the server refuses, or its answer holds no token. The message quotes
        the answer."""
        fields = {"grant_type": "client_credentials"}
        if self._refresh:
            fields = {"grant_type": "refresh_token", "refresh_token": self._newer or secret_of(self._refresh)}
        if self._scope:
            fields["scope"] = self._scope
        headers = {"Accept": "application/json"}
        if self._secret:
            pair = f"{quote_plus(self._client)}:{quote_plus(secret_of(self._secret))}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            fields["client_id"] = self._client
        page = await session.send(Request(self.url, body=fields, headers=headers, redirects="keep"))
        told = _told(page)
        token, kind = told.get("access_token"), told.get("token_type")
        if page.status != 200 or not isinstance(token, str) or str(kind).lower() != "bearer":
            reason = told.get("error_description") or told.get("error") or "no bearer token is in its answer"
            raise UsageError(f"{self.url} gives no token (status {page.status}): {str(reason)[:_TOLD]!r}")
        newer = told.get("refresh_token")
        if isinstance(newer, str) and self._refresh:
            self._newer = newer
        seconds = told.get("expires_in")
        session.bear(token, seconds if isinstance(seconds, int | float) and seconds > 0 else 0.0)


def _told(page: Any) -> dict[str, Any]:
    try:
        told = page.json()
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
