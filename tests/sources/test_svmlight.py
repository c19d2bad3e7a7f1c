from __future__ import annotations

import gzip
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from nfs_dask.errors import InputError, StoreError
from nfs_dask.sources import svmlight
from nfs_dask.sources.source import Source
from nfs_dask.sources.svmlight import SvmlightSource
from tests.helpers.truth import assert_counts

RNG = np.random.default_rng(3)
X = RNG.integers(0, 4, (40, 9)) * (RNG.random((40, 9)) < 0.4)
X[3, 0] = X[7, 8] = 2
X[11] = 0
Y = RNG.choice([-1, 1], 40)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(svmlight, "PIECE_NBYTES", 200)


def write(path, X=X, y=Y, zero_based=True, comment=None):
    dump_svmlight_file(sparse.csr_matrix(X), y, str(path), zero_based=zero_based, comment=comment)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(path.read_bytes()))
    return path


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("name", ["data.svm", "data.svm.gz"])
def test_it_counts_like_numpy(tmp_path, name, zero_based):
    path = write(tmp_path / name, zero_based=zero_based, comment="two\nlines")
    for given in ("auto", zero_based):
        source = SvmlightSource(path, zero_based=given)
        assert isinstance(source, Source)
        assert (source.n_rows, source.n_features, source.nnz, source.kind) == (40, 9, np.count_nonzero(X), "count")
        assert source.classes.tolist() == [-1, 1]
        assert source.n_blocks == 1 if name.endswith("gz") else source.n_blocks > 3
        assert_counts(source, X, Y)
    truth, labels = load_svmlight_file(str(path), zero_based=zero_based)
    rows = np.concatenate([np.diff(b.indptr) for b in source.blocks(0, source.n_blocks)])
    assert rows.tolist() == np.diff(truth.indptr).tolist()
    codes = np.concatenate([b.codes for b in source.blocks(0, source.n_blocks)])
    assert source.classes[codes].tolist() == labels.tolist()


def test_a_compressed_file_is_handed_out_in_pieces(tmp_path):
    source = SvmlightSource(write(tmp_path / "data.svm.gz"))
    blocks = list(source.blocks(0, 1))
    assert len(blocks) > 1
    assert [b.first_row for b in blocks] == np.cumsum([0, *(b.n_rows for b in blocks[:-1])]).tolist()


def test_many_files_share_columns_and_classes(tmp_path):
    y = np.repeat([3, 1, 2], [10, 20, 10])
    for part, rows in enumerate((slice(0, 10), slice(10, 30), slice(30, 40))):
        write(tmp_path / f"part-{part}.svm", X[rows], y[rows], zero_based=True)
    source = SvmlightSource(tmp_path / "part-*.svm")
    assert source.classes.tolist() == [1, 2, 3]
    assert_counts(source, X, y)
    again = pickle.loads(pickle.dumps(SvmlightSource(sorted(tmp_path.iterdir()))))
    assert_counts(again, X, y)
    assert again.fingerprint == source.fingerprint
    (tmp_path / "part-1.svm").write_bytes((tmp_path / "part-1.svm").read_bytes() + b"1 0:1\n")
    assert SvmlightSource(tmp_path / "part-*.svm").fingerprint != source.fingerprint
    with pytest.raises(InputError, match=r"part-1\.svm has changed since"):
        list(source.blocks(0, source.n_blocks))
    text = (tmp_path / "part-0.svm").read_bytes()
    (tmp_path / "part-0.svm").write_bytes(text.replace(b"\n", b" ", 1))  # as long, but with one row less
    with pytest.raises(InputError, match="part-0"):
        list(source.blocks(0, 1))


def test_awkward_lines(tmp_path):
    path = tmp_path / "data.svm"
    path.write_bytes(b"# head qid:1\n\n1 2:1.5 7:2 # tail qid:3\n   \n-1\n1 2:0\r\n-1 1:1")
    source = SvmlightSource(path)
    truth = np.zeros((4, 7))
    truth[0, 1], truth[0, 6], truth[3, 0] = 1.5, 2, 1
    assert source.kind == "real"
    assert_counts(source, truth, [1, -1, 1, -1])


@pytest.mark.parametrize(("value", "kind"), [("1", "binary"), ("3", "count"), ("0.5", "real"), ("-2", "signed")])
def test_the_scan_tells_the_kind(tmp_path, value, kind):
    (tmp_path / "data.svm").write_text(f"1 1:1\n0 2:{value}\n")
    assert SvmlightSource(tmp_path / "data.svm").kind == kind


def test_width(tmp_path):
    path = write(tmp_path / "data.svm")
    assert SvmlightSource(path, n_features=20).n_features == 20
    with pytest.raises(InputError, match="9 columns, which is more than n_features=8"):
        SvmlightSource(path, n_features=8)


GOOD = b"1 1:1 2:1\n-1 3:2\n" * 40


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b"1 1:1 2:x", "line 81: '1 1:1 2:x' is not"),
        (b"1 1:1 junk", "line 81"),
        (b"cat 1:1", "line 81"),
        (b"1 5:1 2:1", "line 81.*sorted and unique"),
        (b"1 2:1 2:1", "line 81.*sorted and unique"),
        (b"1 -2:1", "line 81.*Invalid index -2"),
        (b"1 99999999999:1", "line 81"),
        (b"1,2 1:1", "line 81.*several labels"),
        (b"1 qid:4 1:1", "line 81.*query ids"),
        (b"0.5 1:1", "Unknown label type: continuous"),
        (b"\xff\xfe 1:1", "line 81"),
    ],
)
@pytest.mark.parametrize("name", ["data.svm", "data.svm.gz"])
def test_a_broken_line_is_named(tmp_path, name, bad, message):
    path = tmp_path / name
    text = GOOD + bad + b"\n" + GOOD
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    with pytest.raises(InputError, match=message) as caught:
        SvmlightSource(path)
    assert str(path) in str(caught.value)


def test_a_zero_where_columns_begin_at_one(tmp_path):
    (tmp_path / "data.svm").write_text("1 1:1\n1 0:1\n")
    with pytest.raises(InputError, match="line 2.*Invalid index 0"):
        SvmlightSource(tmp_path / "data.svm", zero_based=False)


def test_nothing_to_read(tmp_path):
    (tmp_path / "empty.svm").write_text("# nothing\n")
    with pytest.raises(InputError, match="no documents"):
        SvmlightSource(tmp_path / "empty.svm")
    (tmp_path / "empty.svm").write_text("1\n-1\n")
    with pytest.raises(InputError, match="no features"):
        SvmlightSource(tmp_path / "empty.svm")
    with pytest.raises(StoreError, match=r"absent\.svm is missing"):
        SvmlightSource(tmp_path / "absent.svm")
    with pytest.raises(StoreError, match=r"no file matches .*\*\.light"):
        SvmlightSource(tmp_path / "*.light")
    with pytest.raises(StoreError, match="is a folder"):
        SvmlightSource(tmp_path)
    with pytest.raises(InputError, match="no files"):
        SvmlightSource([])


def test_a_truncated_archive(tmp_path):
    path = write(tmp_path / "data.svm.gz")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"data\.svm\.gz is damaged or cut short"):
        SvmlightSource(path)


def test_an_endless_line_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(svmlight, "LONGEST_LINE", 1000)
    (tmp_path / "data.svm").write_bytes(b"1 1:1\n1 " + b" " * 5000)
    with pytest.raises(InputError, match="longer than 1.0 KiB|longer than 1000 B"):
        SvmlightSource(tmp_path / "data.svm")


def test_nothing_but_heads_and_line_ends_is_read_before_somebody_looks(tmp_path, monkeypatch):
    parts = [write(tmp_path / f"part-{i}.svm", X[20 * i : 20 * i + 20], Y[20 * i : 20 * i + 20]) for i in range(2)]
    known = SvmlightSource(parts)
    parse, asked = svmlight.parse, []
    monkeypatch.setattr(svmlight, "parse", lambda *args: asked.append(args) or parse(*args))
    source = SvmlightSource(parts, look=False)
    assert not source.is_shipped and source.about_entries == pytest.approx(known.nnz, rel=0.1) and not asked
    tasks = []
    source.look(lambda function, items: tasks.extend(items) or [function(item) for item in items])
    assert len(asked) == len(tasks) == known.n_blocks > 2
    source.look(None)  # once is enough
    assert vars(source.facts) | {"classes": None} == vars(known.facts) | {"classes": None}
    assert (source.sizes, source._blocks) == (known.sizes, known._blocks)
    assert SvmlightSource(parts, look=False).classes.tolist() == [-1, 1]  # whoever asks has looked


def test_lines_are_numbered_wherever_they_are_looked_at(tmp_path):
    (tmp_path / "data.svm").write_bytes(GOOD + b"1 1:1 2:x\n" + GOOD)
    source = SvmlightSource(tmp_path / "data.svm", look=False)
    with pytest.raises(InputError, match="line 81: '1 1:1 2:x' is not"):
        source.look(lambda function, items: [function(item) for item in reversed(items)])


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_pieces_end_where_reading_on_would_end_them(tmp_path, newline, monkeypatch):
    path = tmp_path / "data.svm"
    text = b"".join(b"1 1:%d" % 10 ** (i % 23) + newline for i in range(300))
    monkeypatch.setattr(svmlight, "LINE_NBYTES", 7)
    for end in (len(text), len(text) - len(newline)):
        path.write_bytes(text[:end])
        for nbytes in (1, 11, 50, 199, 5000, len(text)):
            monkeypatch.setattr(svmlight, "PIECE_NBYTES", nbytes)
            wanted = [0]
            with open(path, "rb") as file:
                while piece := file.read(nbytes):
                    wanted.append(wanted[-1] + len(piece if piece.endswith(b"\n") else piece + file.readline()))
            assert svmlight._cuts(str(path), end) == wanted
