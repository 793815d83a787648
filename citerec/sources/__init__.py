"""What is fetched: releases of corpora, and look-ups at web services."""
