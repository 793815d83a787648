"""The exceptions of citerec. Each says what is wrong and how to fix it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


class CiterecError(Exception):
    """Something went wrong while running.

    Args:
        message: What is wrong, and where.
        remedy: How to fix it, or what to do next.
    """

    exit_code = 1

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message, remedy)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message.rstrip('.')}. {self.remedy}"


class UsageError(Exception):
    """Options of a command that do not go together; its text says which."""


class InputError(CiterecError):
    """The input cannot be used: correct it and call again."""

    exit_code = 2


class SourceError(InputError):
    """A file to read from is missing, broken, or of no known format."""


class QueryError(InputError):
    """A sentence from which no query can be made."""


class FilterError(InputError):
    """A filter or a number of hits that the index does not support."""


class SettingsError(InputError):
    """A setting that does not exist, or a value out of its range."""


class IndexUnusableError(InputError):
    """An index directory that is missing, half built, or of another version."""


class ServiceError(InputError):
    """A web service that a system asks cannot be reached, refuses, or answers something else than it should."""


class BuildError(CiterecError):
    """An index, a model or a file could not be built or written; an earlier one is kept."""


class WriterError(CiterecError):
    """A writer could not write: its model or its server failed, or the task lacks what it needs."""


class SearchError(CiterecError):
    """Lucene failed while searching an index that it could open."""


class SystemFailedError(CiterecError):
    """A Python function that is evaluated as a system raised an error."""


class JavaError(CiterecError):
    """There is no Java runtime that can run Lucene."""


class ModelError(InputError):
    """A model cannot be found, loaded, or used for this task."""


def first_fault(error: "ValidationError") -> str:
    """The first validation error of a file, and where in the file it is."""
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}".strip(": ")
