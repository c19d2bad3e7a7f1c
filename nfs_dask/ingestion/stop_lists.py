"""Stop words by the name of a language. Stores and models keep the words, so that only their makers need the lists."""

from __future__ import annotations

from dataclasses import replace

from nfs_dask.errors import InputError
from nfs_dask.text.counting import TermCounter
from nfs_dask.text.settings import TextSettings
from nfs_dask.text.strings import Strings


def stop_words_of(language: str, settings: TextSettings) -> tuple[str, ...]:
    """The words of a list as it is, and as texts with those settings are read: cut, lowered and stripped; sorted.

    "english" is scikit-learn's list, word for word.
    """
    if language == "english":
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return tuple(sorted(ENGLISH_STOP_WORDS))
    listed = set(_listed(language))
    if settings.tokenizer is None and settings.analyzer == "word":
        counter = TermCounter(replace(settings, stop_words=None, ngrams=(1, 1), stem=None))
        counter.add(Strings.of(sorted(listed)))
        listed |= set(counter.finish().terms.to_list())
    return tuple(sorted(listed))


def _listed(language: str) -> list[str]:
    try:
        from stop_words import StopWordError, get_stop_words
    except ImportError:
        raise InputError(
            f"stop_words={language!r} needs the package stop-words, which is not installed; "
            "pip install 'nfs-dask[languages]', or give 'english' or a list of words"
        ) from None
    try:
        return list(get_stop_words(language))
    except StopWordError:
        raise InputError(
            f"stop_words={language!r}; give one of {', '.join(languages())}, a list of words, or None"
        ) from None


def languages() -> list[str]:
    """Those that have a list here: of the package stop-words, and English in any case."""
    try:
        from stop_words import AVAILABLE_LANGUAGES
    except ImportError:
        return ["english"]
    return sorted(AVAILABLE_LANGUAGES)
