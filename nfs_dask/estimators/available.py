"""Methods that some estimators of a class have, and others have not."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper, wraps
from types import MethodType
from typing import Any


class AvailableIf:
    """A method of the estimators that a check says yes to; to others it is no attribute.

    As scikit-learn's ``available_if`` has it, which loads all that its estimators are made of.
    """

    def __init__(self, check: Callable[[Any], bool], function: Callable[..., Any]) -> None:
        update_wrapper(self, function)  # type: ignore[arg-type]  # it calls nothing itself
        self.fn = function
        self._check = check

    def __get__(self, estimator: Any, owner: type) -> Callable[..., Any]:
        if estimator is None:

            @wraps(self.fn)
            def unbound(estimator: Any, *args: Any, **kwargs: Any) -> Any:
                return self.__get__(estimator, owner)(*args, **kwargs)

            return unbound
        if not self._check(estimator):
            raise AttributeError(f"This {owner.__name__!r} has no attribute {self.fn.__name__!r}")
        return MethodType(self.fn, estimator)


def available_if(check: Callable[[Any], bool]) -> Callable[[Callable[..., Any]], Any]:
    """Makes a method one of the estimators that the check says yes to."""
    return lambda function: AvailableIf(check, function)
