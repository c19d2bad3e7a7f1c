"""Somebody in a terminal with a large CSV, of which a column says what is for training and what for a test."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.journeys import Journey

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

NBYTES = int(os.environ.get("NFS_DASK_JOURNEY_NBYTES", 300_000_000))  # 2000000000 for the long way
TELLING = {"ham": "meeting lunch minutes".split(), "spam": "winner prize urgent".split()}


@pytest.fixture(scope="module")
def mail(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CSV of documents of 60 words, a quarter of them for a test; its lines are repeated until it is large."""
    rng = np.random.default_rng(0)
    lines = []
    for i in range(20_000):
        folder = ("ham", "spam")[i % 2]
        words = [*(f"word{j}" for j in rng.zipf(1.3, 60) % 20_000), *rng.choice(TELLING[folder], 2)]
        lines.append(f'{folder},{"test" if i % 8 > 5 else "train"},"{" ".join(words)}"\n')
    path = tmp_path_factory.mktemp("mail") / "mail.csv"
    part = "".join(lines).encode()
    with path.open("wb") as file:
        file.write(b"folder,split,text\n")
        while file.tell() < NBYTES:
            file.write(part)
    return path


def test_from_a_csv_to_predictions(journey: Journey, mail: Path) -> None:
    (journey.folder / "mail.csv").symlink_to(mail)
    ingested = journey.shell("nfs-dask ingest mail.csv --label-column folder --where split=train mail.zarr")
    assert "2 classes" in ingested and journey.fits(ingested)

    fitted = journey.shell("nfs-dask fit mail.zarr spam.model -k 6")
    assert all(word in fitted for words in TELLING.values() for word in words)
    assert "no other choice of as many features is better" in fitted and journey.fits(fitted)
    first_success = journey.minutes

    judged = journey.shell("nfs-dask evaluate spam.model mail.csv --label-column folder --where split=test")
    accuracy = re.search(r"accuracy (0\.\d+|1\.0+)", judged)
    assert accuracy is not None and float(accuracy[1]) > 0.99 and journey.fits(judged)

    said = journey.shell("nfs-dask predict spam.model mail.csv --where split=test --out classes.csv")
    assert "predictions written to classes.csv" in said and journey.fits(said)
    with (journey.folder / "classes.csv").open() as file:
        assert file.readline() == "row,label,probability\n"
        assert file.readline().startswith("6,ham,")  # rows are numbered as in the file
    print(f"{mail.stat().st_size / 1e6:,.0f} MB: a model after {first_success:.2f} minutes")
    assert first_success < max(1, mail.stat().st_size / 1e8)  # which is 2 MB a second, also on a busy machine
