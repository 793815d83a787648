"""Papers that a causal language model names: `Title, FirstAuthor` written where the citation is missing."""
