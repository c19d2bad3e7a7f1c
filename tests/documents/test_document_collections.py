from __future__ import annotations

import collections

import dask
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.delayed import delayed

from nfs_dask.documents import in_memory as memory
from nfs_dask.documents.document_source import TextColumns
from nfs_dask.documents.in_memory import DaskDocuments, Partition
from nfs_dask.errors import InputError
from tests.helpers.taking import take

SKIP = TextColumns(on_error="skip")
TEXTS = [f"text {i} naïve" for i in range(10)]
LABELS = ["ham" if i % 3 else "spam" for i in range(10)]
PAIRS = list(zip(TEXTS, LABELS, strict=True))
DICTS = [{"text": text, "class": label, "n": i} for i, (text, label) in enumerate(PAIRS)]


@pytest.fixture
def computed(monkeypatch):
    """Counts how often each partition is made."""
    counts: collections.Counter[int] = collections.Counter()

    def made(number, items):
        counts[number] += 1
        return items

    def bag(*partitions):
        return db.from_delayed([delayed(made)(i, list(items)) for i, items in enumerate(partitions)])

    return counts, bag


def test_a_bag_of_strings(computed):
    counts, bag = computed
    source = DaskDocuments(bag(TEXTS[:4], [], TEXTS[4:]), TextColumns())
    assert counts == {0: 1}
    taken = take(source)
    assert taken.texts == TEXTS and taken.pieces == [4, 0, 6] and not source.labelled and not source.in_memory
    assert source.import_nbytes == 0 and source.nbytes is None and source.fingerprint is None


def test_a_bag_of_pairs():
    source = DaskDocuments(db.from_sequence(PAIRS, npartitions=3), TextColumns())
    taken = take(source)
    assert source.labelled and (taken.texts, taken.labels) == (TEXTS, LABELS)


def test_a_bag_of_dicts():
    bag = db.from_sequence(DICTS, npartitions=3)
    taken = take(DaskDocuments(bag, TextColumns(("text",), "class", "n")))
    assert (taken.texts, taken.labels, taken.weights) == (TEXTS, LABELS, list(range(10)))
    taken = take(DaskDocuments(bag, TextColumns(("class", "text"))))
    assert taken.texts == list(zip(LABELS, TEXTS, strict=True)) and taken.labels == []
    source = DaskDocuments(bag, TextColumns(label="class"))
    assert source.columns.text == ("text",) and take(source).labels == LABELS


def test_named_columns_spare_the_look(computed):
    counts, bag = computed
    DaskDocuments(bag(DICTS), TextColumns(("text",), "class"))
    assert not counts


def test_the_look_goes_no_further_than_the_first_item(computed):
    counts, bag = computed
    assert take(DaskDocuments(bag([], [], [None, *PAIRS[:2]], PAIRS[2:]), SKIP)).labels == LABELS
    assert counts == {0: 2, 1: 2, 2: 2, 3: 1}


def test_a_lazy_partition_is_read_in_steps(monkeypatch):
    monkeypatch.setattr(memory, "BATCH_NBYTES", 30)
    source = DaskDocuments(db.from_sequence(TEXTS, npartitions=1), TextColumns())
    read = []
    items = (read.append(text) or text for text in TEXTS)
    batches = source.batches(Partition(0, items))
    first = next(batches)
    assert first.n_documents == len(read) == 3
    assert sum(batch.n_documents for batch in batches) == 7


@pytest.mark.parametrize(
    ("first", "odd", "said"),
    [
        ("a", ["b"], "is a list, not a string"),
        ("a", ("b", "c"), "is a tuple, not a string"),
        ("a", 7, "is 7, not a string"),
        ("a", b"b", "is a bytes.*decode"),
        (("a", "x"), "b", "is a str, while the first item of the bag is a .text, label. pair"),
        (("a", "x"), ("b", "y", "z"), "is a tuple, while the first"),
        (("a", "x"), (3, "y"), "is 3, not a string"),
        ({"text": "a"}, "b", "is a str; items are dicts"),
    ],
)
def test_an_odd_item_is_named(first, odd, said):
    bag = db.from_delayed([delayed([first]), delayed([first, first, first, odd])])
    with pytest.raises(InputError, match=f"item 3 of partition 1 {said}"):
        take(DaskDocuments(bag, SKIP))


def test_an_odd_text_in_a_dict_is_named():
    with pytest.raises(InputError, match=r"item 1 of partition 0, 'text' is 2.5, not a string"):
        take(DaskDocuments(db.from_sequence([{"text": "a"}, {"text": 2.5}], npartitions=1), SKIP))


def test_bad_items_are_left_out_and_named():
    def problems(items, columns=SKIP):
        taken = take(DaskDocuments(db.from_sequence(items, npartitions=1), columns))
        assert [text for text in taken.texts if text] == ["a"]
        return [
            (kind, int(where.removeprefix("item ").removesuffix(" of partition 0"))) for kind, where in taken.problems
        ]

    assert problems(["a", None, "", float("nan"), "\ud800"]) == [
        ("missing", 1),
        ("missing", 3),
        ("undecodable", 4),
    ]
    assert problems([("a", "x"), ("b", None), (None, "x"), None, ("", "x")]) == [
        ("label", 1),
        ("missing", 2),
        ("missing", 3),
    ]
    columns = TextColumns(("text",), "class", "n", on_error="skip")
    good = {"text": "a", "class": 1, "n": 1}
    items = [good, good | {"class": None}, good | {"n": "x"}, {"class": 1, "n": 1}, good | {"text": None}, {}]
    assert problems(items, columns) == [("label", 1), ("weight", 2), ("broken", 3), ("missing", 4), ("broken", 5)]
    with pytest.raises(InputError, match=r"item 3 of partition 0: the dict has no 'text'; it has 'class', 'n'"):
        take(DaskDocuments(db.from_sequence([good] * 3 + items[3:], npartitions=1), TextColumns(("text",))))


def test_bags_that_cannot_be_read_are_refused():
    with pytest.raises(InputError, match=r"dicts with 'body', 'x'; name the text among them with text_column="):
        DaskDocuments(db.from_sequence([{"body": "a", "x": 1}]), TextColumns())
    with pytest.raises(InputError, match=r"label_column='class' names a key of dicts, but the bag holds a str"):
        DaskDocuments(db.from_sequence(TEXTS), TextColumns(label="class"))
    with pytest.raises(InputError, match=r"weight_column='n'.* a tuple"):
        DaskDocuments(db.from_sequence(PAIRS), TextColumns(weight="n"))
    with pytest.raises(InputError, match="the bag has no items"):
        DaskDocuments(db.from_delayed([delayed([]), delayed([None])]), TextColumns())


FRAME = pd.DataFrame({"text": TEXTS, "class": LABELS, "n": range(10)})


@pytest.mark.parametrize("strings", [True, False])
def test_frames_and_series(strings, monkeypatch):
    monkeypatch.setattr(memory, "BATCH_NBYTES", 30)
    with dask.config.set({"dataframe.convert-string": strings}):
        frame = dd.from_pandas(FRAME, npartitions=3)
        source = DaskDocuments(frame, TextColumns(("text",), "class", "n"))
        taken = take(source)
        assert (taken.texts, taken.labels, taken.weights) == (TEXTS, LABELS, list(range(10)))
        assert len(taken.pieces) == 3 and source.import_nbytes > 0
        source = DaskDocuments(frame["text"], TextColumns())
        assert take(source).texts == TEXTS and not source.labelled
        regions = take(DaskDocuments(frame, TextColumns(("text", "class")))).texts
        assert regions == PAIRS


def test_bad_rows_are_named():
    frame = FRAME.assign(text=[*TEXTS[:7], None, *TEXTS[8:]])
    source = DaskDocuments(dd.from_pandas(frame, npartitions=2), TextColumns(("text",), on_error="skip"))
    taken = take(source)
    assert taken.problems == [("missing", "document 2 of partition 1")] and len(taken.texts) == 9
    with pytest.raises(InputError, match=r"columns 'text', 'class', 'n'; text_column='body' is not among them"):
        DaskDocuments(dd.from_pandas(frame, npartitions=2), TextColumns(("body",)))


def test_empty_partitions_of_frames():
    frame = dd.from_pandas(FRAME, npartitions=3)
    taken = take(DaskDocuments(frame[frame["n"] > 5], TextColumns(("text",), "class")))
    assert taken.texts == TEXTS[6:] and 0 in taken.pieces


def test_persisted_collections_keep_their_futures():
    from distributed import Client

    with Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None, set_as_default=False
    ) as client:
        bag = client.persist(db.from_sequence(PAIRS, npartitions=2))
        source = DaskDocuments(bag, TextColumns())
        assert source.labelled
        found = client.gather(client.compute(list(source.delayed)))
        assert [(part.number, list(part.content)) for part in found] == [(0, PAIRS[:5]), (1, PAIRS[5:])]
        frame = client.persist(dd.from_pandas(FRAME, npartitions=2))
        parts = client.gather(client.compute(list(DaskDocuments(frame, TextColumns(("text",))).delayed)))
        assert [part.number for part in parts] == [0, 1] and np.all(pd.concat([p.content for p in parts]) == FRAME)
