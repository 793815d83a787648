"""Parts for citerec that live in a package of their own."""
