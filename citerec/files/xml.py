"""XML of servers, without document types: those could define entities without end."""

from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser, fromstring

__all__ = ["Element", "read_xml"]


class _Tree(TreeBuilder):
    def doctype(self, *_: str | None) -> None:
        """Called where a document type begins, before its entities are read."""
        raise ValueError("the XML has a document type")


def read_xml(content: bytes) -> Element | None:
    """The root of an XML document; None if it is none, or has a document type."""
    try:
        return fromstring(content, XMLParser(target=_Tree()))
    except (ParseError, ValueError, LookupError):
        return None
