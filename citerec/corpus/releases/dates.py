"""Days on which files on servers were made."""

from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

from citerec.corpus.releases.web import WebError


def day_of(headers: Mapping[str, str]) -> str:
    """The day on which a file last changed, in UTC, as "2026-11-23".

    Raises:
        WebError: The server does not say it.
    """
    try:
        return parsedate_to_datetime(headers.get("Last-Modified", "")).astimezone(UTC).date().isoformat()
    except ValueError:
        raise WebError(
            "the server does not say when its file was made", "Fetch the file yourself, and give it to `index build`."
        ) from None
