"""Sentences with a citation taken out: reading them, cleaning them, turning them into queries."""
