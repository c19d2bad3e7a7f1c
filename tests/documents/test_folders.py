from __future__ import annotations

import os

import fsspec
import pytest

from nfs_dask.documents import folders
from nfs_dask.documents.document_source import TextColumns
from nfs_dask.documents.folders import FolderDocuments
from nfs_dask.errors import DataWarning, InputError, StoreError
from tests.helpers.taking import take

FAIL = TextColumns()
SKIP = TextColumns(on_error="skip")


@pytest.fixture
def imdb(tmp_path):
    """The layout of aclImdb: lists beside the folders of the classes."""
    train = tmp_path / "aclImdb" / "train"
    for label in ("pos", "neg"):
        (train / label).mkdir(parents=True)
        for number in (0, 1, 2, 10):
            (train / label / f"{number}_7.txt").write_text(f"a {label} film, number {number}")
    (train / "urls_pos.txt").write_text("http://example.org")
    (train / "labeledBow.feat").write_text("9 0:9")
    return train


def expected(train, labels=("neg", "pos")):
    files = [file for label in labels for file in sorted((train / label).iterdir())]
    return [file.read_text() for file in files], [file.parent.name for file in files]


def test_folders_are_classes_and_lists_beside_them_are_no_documents(imdb):
    with pytest.warns(DataWarning, match=r"such as labeledBow.feat, urls_pos.txt \(2\)") as warned:
        source = FolderDocuments([str(imdb)], TextColumns())
    assert len(warned) == 1
    taken = take(source)
    assert (taken.texts, taken.labels) == expected(imdb)
    assert source.labelled and source.nbytes == sum(map(len, taken.texts))


def test_folders_of_classes_can_be_given_one_by_one(imdb):
    taken = take(FolderDocuments([f"{imdb}/pos", f"{imdb}/neg/"], TextColumns()))
    assert (taken.texts, taken.labels) == expected(imdb, ("pos", "neg"))


def test_one_folder_of_files_has_no_labels(imdb):
    source = FolderDocuments([f"{imdb}/pos"], TextColumns())
    assert not source.labelled and take(source).texts == expected(imdb, ("pos",))[0]


def test_documents_lie_at_any_depth(tmp_path):
    """The layout of 20news-bydate, and one deeper: labels are the folders that files lie in."""
    for path in ("train/sci.med/58047", "train/rec/autos/101", "train/rec/autos/99", "test/sci.med/1"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    taken = take(FolderDocuments([str(tmp_path)], TextColumns()))
    assert taken.texts == ["test/sci.med/1", "train/rec/autos/101", "train/rec/autos/99", "train/sci.med/58047"]
    assert taken.labels == ["sci.med", "autos", "autos", "sci.med"]


def test_hidden_files_and_folders_are_no_documents(imdb):
    given = [f"{imdb}/neg", f"{imdb}/pos"]
    texts, labels = expected(imdb)
    (imdb / "pos" / ".DS_Store").write_bytes(b"\0\xff")
    (imdb / "pos" / ".cache").mkdir()
    (imdb / "pos" / ".cache" / "x.txt").write_text("hidden")
    taken = take(FolderDocuments(given, TextColumns()))
    assert (taken.texts, taken.labels) == (texts, labels)


def test_links_that_leave_the_folder_are_not_followed(tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key.txt").write_text("private")
    given = tmp_path / "given"
    (given / "a").mkdir(parents=True)
    (given / "a" / "1.txt").write_text("one")
    (given / "a" / "2.txt").symlink_to(given / "a" / "1.txt")
    (given / "a" / "out.txt").symlink_to(secret / "key.txt")
    (given / "a" / "nowhere.txt").symlink_to(tmp_path / "missing")
    (given / "b").symlink_to(secret)
    (given / "a" / "loop").symlink_to(given)
    os.mkfifo(given / "a" / "pipe")
    with pytest.warns(DataWarning, match=r"links that leave .* \(4\); what is neither a file nor a folder \(1\)"):
        source = FolderDocuments([str(given)], TextColumns())
    assert take(source).texts == ["one", "one"]


def test_a_link_to_a_folder_can_be_given(tmp_path, imdb):
    (tmp_path / "link").symlink_to(imdb / "pos")
    (imdb / "pos" / "again.txt").symlink_to(imdb / "pos" / "0_7.txt")
    assert len(take(FolderDocuments([str(tmp_path / "link")], TextColumns())).texts) == 5


def test_pieces_are_bounded_in_files_and_in_bytes(imdb, monkeypatch):
    given = [f"{imdb}/neg", f"{imdb}/pos"]
    texts, labels = expected(imdb)
    monkeypatch.setattr(folders, "PIECE_FILES", 3)
    taken = take(FolderDocuments(given, TextColumns()))
    assert taken.pieces == [3, 3, 2] and (taken.texts, taken.labels) == (texts, labels)
    monkeypatch.setattr(folders, "PIECE_NBYTES", 2 * len(texts[0]))
    taken = take(FolderDocuments(given, TextColumns()))
    assert max(taken.pieces) == 2 and (taken.texts, taken.labels) == (texts, labels)


def test_what_travels_is_small(tmp_path):
    for label in "ab":
        (tmp_path / label).mkdir()
        for number in range(1500):
            (tmp_path / label / f"{number:05d}_{number % 7}.txt").touch()
    source = FolderDocuments([str(tmp_path)], TextColumns())
    assert source.n_pieces == 2
    assert sum(map(len, source.pieces)) < 10 * 3000


def test_the_encoding_is_that_of_the_files(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1").write_bytes("naïve café".encode("latin-1"))
    (tmp_path / "a" / "2").write_bytes(b"plain")
    assert take(FolderDocuments([str(tmp_path)], TextColumns(encoding="latin-1"))).texts == ["naïve café", "plain"]
    with pytest.raises(InputError, match=r"a/1: the byte 0xef .* not valid UTF-8"):
        take(FolderDocuments([str(tmp_path)], TextColumns()))
    taken = take(FolderDocuments([str(tmp_path)], SKIP))
    assert taken.texts == ["plain"] and taken.problems == [("undecodable", str(tmp_path / "a" / "1"))]
    assert taken.labels == ["a"] and taken.seen == 2
    with pytest.raises(InputError, match="encoding='klingon'"):
        FolderDocuments([str(tmp_path)], TextColumns(encoding="klingon"))


def test_bad_files_are_named(imdb, monkeypatch):
    (imdb / "pos" / "0_7.txt").write_bytes(b"\xff")
    (imdb / "pos" / "1_7.txt").write_text("long" * 100)
    monkeypatch.setattr(folders, "DOCUMENT_NBYTES", 200)
    source = FolderDocuments([f"{imdb}/pos"], SKIP)
    (imdb / "pos" / "2_7.txt").unlink()
    taken = take(source)
    assert taken.problems == [
        (kind, f"{imdb}/pos/{name}")
        for kind, name in (("undecodable", "0_7.txt"), ("broken", "1_7.txt"), ("broken", "2_7.txt"))
    ]
    assert "400 B" in taken.whats[1] and "gone since" in taken.whats[2]
    with pytest.raises(InputError, match=r"0_7.txt: the byte 0xff.*on_error"):
        take(FolderDocuments([f"{imdb}/pos"], TextColumns()))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_a_file_that_may_not_be_read_is_named(imdb):
    (imdb / "pos" / "0_7.txt").chmod(0)
    assert take(FolderDocuments([f"{imdb}/pos"], SKIP)).problems == [("broken", f"{imdb}/pos/0_7.txt")]


def test_names_that_are_no_utf8_can_be_told(tmp_path):
    folder = os.fsencode(tmp_path) + b"/gr\xfcn"
    os.mkdir(folder)
    for name in (b"1\xff.txt", b"2.txt"):
        with open(folder + b"/" + name, "wb") as file:
            file.write(b"ok" if name == b"2.txt" else b"\xff")
    taken = take(FolderDocuments([str(tmp_path)], SKIP))
    assert taken.labels == [r"gr\xfcn"]
    assert taken.problems == [("undecodable", rf"{tmp_path}/gr\xfcn/1\xff.txt")]
    taken.problems[0][1].encode()


def test_a_folder_without_documents_is_refused(tmp_path):
    (tmp_path / ".hidden").touch()
    (tmp_path / "link").symlink_to("/")
    with pytest.raises(InputError, match=r"holds no documents.*links that leave .* \(1\)"):
        FolderDocuments([str(tmp_path)], TextColumns())
    with pytest.raises(StoreError, match="is missing"):
        FolderDocuments([str(tmp_path / "nowhere")], TextColumns())


def test_folders_inside_one_another_are_refused(imdb):
    for given in ([str(imdb), f"{imdb}/pos"], [f"{imdb}/pos", f"{imdb}/pos/"]):
        with pytest.raises(InputError, match=r"pos is in .*would count twice"):
            FolderDocuments(given, TextColumns())
    (imdb.parent / "train-more").mkdir()
    (imdb.parent / "train-more" / "1").write_text("more")
    FolderDocuments([f"{imdb}/pos", f"{imdb.parent}/train-more"], TextColumns())


def test_tables_are_not_read_as_texts(tmp_path):
    (tmp_path / "part.0.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"is a table.*\*\.parquet"):
        FolderDocuments([str(tmp_path)], TextColumns())


def test_the_fingerprint_follows_the_files(imdb):
    def now(columns=FAIL):
        return FolderDocuments([f"{imdb}/pos"], columns).fingerprint

    first = now()
    assert first == now() and first != now(TextColumns(encoding="latin-1"))
    (imdb / "pos" / "0_7.txt").write_text("another text")
    second = now()
    (imdb / "pos" / "11.txt").write_text("one more")
    assert len({first, second, now()}) == 3


@pytest.fixture
def memory():
    fs = fsspec.filesystem("memory")
    yield fs
    for path in fs.ls("/", detail=False):
        fs.rm(path, recursive=True)


def copy(folder, fs, target):
    for file in folder.rglob("*"):
        if file.is_file():
            fs.pipe_file(f"{target}/{file.relative_to(folder)}", file.read_bytes())


def test_folders_behind_a_url(imdb, memory, monkeypatch):
    copy(imdb, memory, "/corpus")
    memory.pipe_file("/corpus/pos/odd[1]*.txt", b"\xff")
    monkeypatch.setattr(folders, "READ_FILES", 3)
    with pytest.warns(DataWarning, match="labeledBow.feat"):
        source = FolderDocuments(["memory://corpus"], SKIP)
    taken = take(source)
    assert (taken.texts, taken.labels) == expected(imdb)
    assert taken.problems == [("undecodable", "memory://corpus/pos/odd[1]*.txt")]
    memory.rm("/corpus/neg/0_7.txt")
    assert take(source).problems[0] == ("broken", "memory://corpus/neg/0_7.txt")
    monkeypatch.setattr(folders, "DOCUMENT_NBYTES", 1)
    assert len(take(source).problems) == 9


@pytest.mark.parametrize("now", ["much longer than it was", "a", ""])
def test_remote_files_of_another_size_than_listed_are_read_whole(memory, now):
    memory.pipe_file("/corpus/pos/0.txt", b"some words")
    memory.pipe_file("/corpus/pos/1.txt", b"others")
    source = FolderDocuments(["memory://corpus"], SKIP)
    memory.pipe_file("/corpus/pos/0.txt", now.encode())
    taken = take(source)
    assert taken.texts == [now, "others"]


def test_remote_files_take_one_request_each(s3, monkeypatch):
    fs = fsspec.filesystem("s3")
    for number in range(9):
        fs.pipe_file(f"{s3}/corpus/pos/{number}.txt", b"word " * (number + 1))
    source = FolderDocuments([f"{s3}/corpus"], SKIP)
    asked = []
    send = type(fs)._call_s3
    monkeypatch.setattr(type(fs), "_call_s3", lambda *args, **kwargs: asked.append(args[1]) or send(*args, **kwargs))
    assert [len(text.split()) for text in take(source).texts] == [*range(1, 10)]
    assert asked == ["get_object"] * 9


def test_folders_in_a_bucket(imdb, s3):
    copy(imdb / "pos", fsspec.filesystem("s3"), f"{s3}/corpus/pos")
    copy(imdb / "neg", fsspec.filesystem("s3"), f"{s3}/corpus/neg")
    fsspec.filesystem("s3").pipe_file(f"{s3}/corpus/pos/odd.txt", b"\xff")
    source = FolderDocuments([f"{s3}/corpus"], SKIP)
    taken = take(source)
    assert (taken.texts, taken.labels) == expected(imdb)
    assert taken.problems == [("undecodable", f"{s3}/corpus/pos/odd.txt")]
    assert source.fingerprint == FolderDocuments([f"{s3}/corpus"], SKIP).fingerprint
