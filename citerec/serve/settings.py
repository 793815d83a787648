"""The settings of the server: limits, time-outs, threads."""

import os
from collections.abc import Sequence
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, ValidationError

from citerec.settings import PartSettings, assign, setting_keys, settings_error

PREFIX = "serve."


def _listed(value: Any) -> Any:
    return tuple(name.strip() for name in value.split(",") if name.strip()) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_listed)]


class ServeSettings(PartSettings):
    """Limits, time-outs and threads of the server. On the command line: `-c serve.KEY=VALUE`."""

    threads: int = Field(
        default=0, ge=0, le=256, description="threads that search; 0 for one for each processor, at least two"
    )
    queue: int = Field(default=64, ge=0, description="requests that may wait for a thread; further ones get 503")
    seconds: float = Field(default=30, gt=0, le=3600, description="longest time for the answer to a request; then 503")
    body_seconds: float = Field(default=10, gt=0, le=3600, description="longest time to send a body; then 408")
    body_bytes: int = Field(default=1_048_576, ge=1024, description="longest body, in bytes; then 413")
    characters: int = Field(default=20_000, ge=1, le=100_000, description="longest text, in characters")
    draft_characters: int = Field(
        default=300_000, ge=1, le=2_000_000, description="longest draft, and longest bibliography, in characters"
    )
    places: int = Field(default=200, ge=1, le=1000, description="most places of a draft")
    refs: int = Field(default=20, ge=1, le=1000, description="most <REF> in a text")
    k: int = Field(default=100, ge=1, le=1000, description="most papers in a list")
    rate: float = Field(
        default=50, ge=0, description="requests a second of one client, or of one token; 0 for no limit; then 429"
    )
    burst: int = Field(default=100, ge=1, description="requests that a client may make at once, before the rate counts")
    connections: int = Field(default=1000, ge=10, description="connections at the same time; then 503")
    watch_seconds: float = Field(default=2, gt=0, description="how often indexes are checked for a replacement")
    hosts: Names = Field(default=(), description="further names of this server that the Host header may have")
    proxies: Names = Field(
        default=(), description="addresses of reverse proxies: their X-Forwarded-For names the client"
    )

    @property
    def number_of_threads(self) -> int:
        """How many threads search."""
        return self.threads or max(2, os.cpu_count() or 2)

    @classmethod
    def load(cls, assignments: Sequence[str] = ()) -> Self:
        """The settings, changed by assignments such as `serve.queue=100`.

        Raises:
            SettingsError: A key is unknown, or a value is out of range.
        """
        values: dict[str, Any] = {}
        assign(values, [assignment.removeprefix(PREFIX) for assignment in assignments], _known)
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise settings_error(error, PREFIX.rstrip("."), _known) from None


def _known() -> dict[str, tuple[Any, str]]:
    return setting_keys(ServeSettings, PREFIX)
