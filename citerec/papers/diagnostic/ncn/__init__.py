"""NCN (Ebesu and Fang, SIGIR 2017): a reranker by how well it could write the titles of candidates."""
