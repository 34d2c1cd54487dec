"""A function, called by several threads at the same time."""

import threading
from collections.abc import Callable


def call_beside_each_other(work: Callable[[], object], callers: int = 4) -> None:
    """Call a function in so many threads, and wait for all of them."""
    threads = [threading.Thread(target=work) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
