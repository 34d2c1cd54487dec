"""One array over many processes, as users meet it; `dcarray.comm` moves the elements."""
