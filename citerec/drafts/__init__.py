"""Drafts: LaTeX, Markdown and plain text, with the places that want a citation."""

from citerec.drafts.base import Draft, Place
from citerec.drafts.read import read_draft

__all__ = ["Draft", "Place", "read_draft"]
