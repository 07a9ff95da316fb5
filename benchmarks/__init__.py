"""One script per question, each prints one table."""

import model  # noqa: F401 (says how the threads of FAISS wait, before it is loaded)
