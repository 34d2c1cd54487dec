"""A function, called by several threads at the same time."""

import threading
from collections.abc import Callable


def together(count: int, work: Callable[[int], object]) -> None:
    """Have so many threads do it, each with its number, and raise what any of them raises."""
    raised: list[BaseException] = []

    def one(k: int) -> None:
        try:
            work(k)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=one, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in raised:
        raise error
