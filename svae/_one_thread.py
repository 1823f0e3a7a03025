"""Products of small matrices in one thread: others would wait for each of them at full speed, and gain nothing."""

import contextlib
import functools
from collections.abc import Generator
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")


@functools.cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


def one_thread() -> contextlib.AbstractContextManager:
    """Inside, numpy's linear algebra has one thread."""
    return _libraries().limit(limits=1, user_api="blas")


def in_one_thread(work: Generator[Item, None, Any]) -> Generator[Item, None, Any]:
    """The items of `work`, each computed in one thread; gives what `work` gives."""
    while True:
        with one_thread():
            try:
                item = next(work)
            except StopIteration as ended:
                return ended.value
        yield item
