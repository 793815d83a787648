"""CiteBART (Celik and Tekir 2024): an encoder-decoder that writes author and year of the cited paper."""
