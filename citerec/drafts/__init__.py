"""Drafts: LaTeX, Markdown, Typst, Org and plain text, with what they cite, and the places that want a citation."""

from citerec.drafts.base import Cited, Draft, Form, Paragraph, Place
from citerec.drafts.files import Files
from citerec.drafts.read import check_places, draft_of_text, place_marker, read_draft

__all__ = [
    "Cited",
    "Draft",
    "Files",
    "Form",
    "Paragraph",
    "Place",
    "check_places",
    "draft_of_text",
    "place_marker",
    "read_draft",
]
