"""XML that a server answers: read without entities and document types, which could read files or fill the memory."""

from typing import TYPE_CHECKING

from citerec.corpus.releases.web import WebError

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


def xml_of(content: bytes, what: str) -> "Element":
    """The root of a document; WebError, which says what was asked for, if it is none."""
    from xml.etree.ElementTree import ParseError

    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    try:
        return fromstring(content, forbid_dtd=True)  # type: ignore[no-any-return]
    except (ParseError, DefusedXmlException, ValueError, LookupError):
        raise WebError(f"{what} is not the XML that it should be", "Try again later.") from None
