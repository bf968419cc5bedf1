"""Which replica owns a ranker, as far as the answers so far have told: calls go there directly."""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx

_OWNER = "x-rankloop-owner"
_PREFIX = "/v1/rankers/"
_MOST = 10_000


class Owners:
    """What a client knows of the owners of rankers."""

    def __init__(self) -> None:
        self._addresses: dict[str, str] = {}

    def url(self, path: str) -> str:
        """Where a call goes: the path alone, or with the address of the owner.

        Parameters
        ----------
        path : str
            Of the call.

        Returns
        -------
        str
            A path for the address that the client was given, or a whole URL.
        """
        return self._addresses.get(_ranker(path), "") + path

    def learn(self, path: str, response: httpx.Response) -> bool:
        """Take in what an answer says about the owner.

        Parameters
        ----------
        path : str
            Of the call.
        response : httpx.Response
            The answer to it.

        Returns
        -------
        bool
            Whether the answer says no more than that: the call is to be sent there.
        """
        address = response.headers.get(_OWNER)
        ranker = _ranker(path)
        if not address or not ranker or urlsplit(address).scheme not in ("http", "https"):
            return False
        if len(self._addresses) >= _MOST:
            self._addresses.clear()
        self._addresses[ranker] = address.rstrip("/")
        return response.status_code == 307

    def forget(self, path: str) -> bool:
        """Send calls about this ranker to the address that the client was given again.

        Parameters
        ----------
        path : str
            Of a call that got no answer.

        Returns
        -------
        bool
            Whether they had gone elsewhere.
        """
        return self._addresses.pop(_ranker(path), None) is not None


def _ranker(path: str) -> str:
    return path[len(_PREFIX) :].partition("/")[0] if path.startswith(_PREFIX) else ""
