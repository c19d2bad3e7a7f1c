"""What all tests share."""

from __future__ import annotations

import os

from hypothesis import settings

# A deadline would measure the machine; compiled kernels make the first example slow anyway.
settings.register_profile("quick", deadline=None, max_examples=25)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
