"""Dense retrieval: vectors of papers, FAISS over them, and the retriever that searches them."""
