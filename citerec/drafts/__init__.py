"""Drafts: LaTeX, Markdown, Typst, Org, Word, notebooks and so on: what they cite, and the places that want it."""

from citerec.drafts.base import Draft, Place
from citerec.drafts.files import Files
from citerec.drafts.read import check_places, draft_of_text, place_marker, read_draft

__all__ = ["Draft", "Files", "Place", "check_places", "draft_of_text", "place_marker", "read_draft"]
