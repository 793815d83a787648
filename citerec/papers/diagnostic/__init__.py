"""The systems that the diagnostic benchmark compares (Maharjan): NCN, HAtten, Galactica and title likelihood."""
