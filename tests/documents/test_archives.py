from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import tarfile
import time
from pathlib import Path

import fsspec
import pytest

from nfs_dask.documents import archives
from nfs_dask.documents.archives import ArchiveDocuments, split_archive
from nfs_dask.documents.document_source import TextColumns
from nfs_dask.errors import InputError, StoreError
from tests.helpers.taking import take

FAIL = TextColumns()
SKIP = TextColumns(on_error="skip")
FILES = {
    "aclImdb/README": "how the data were made",
    "aclImdb/test/urls.txt": "http://example.org",
    "aclImdb/test/pos/0_9.txt": "fine",
    "aclImdb/train/urls.txt": "http://example.org",
    "aclImdb/train/pos/1_9.txt": "good film",
    "aclImdb/train/pos/0_9.txt": "wonderful",
    "aclImdb/train/neg/0_1.txt": "naïve and dull",
}


def add(archive, name, content=b"", kind=tarfile.REGTYPE, **facts):
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, len(content)
    for fact, value in facts.items():
        setattr(member, fact, value)
    archive.addfile(member, io.BytesIO(content))


def write(path, files, mode="w", **settings):
    with tarfile.open(path, mode, **settings) as archive:
        for name, content in files.items():
            add(archive, name, content.encode() if isinstance(content, str) else content)
    return str(path)


def written(folder, files):
    """The bytes of a plain archive."""
    return Path(write(folder / "plain", files)).read_bytes()


def opened(path, *folders, columns=FAIL):
    return ArchiveDocuments([(str(path), tuple(folder.split("/")) if folder else ()) for folder in folders], columns)


TRAIN = (["good film", "wonderful", "naïve and dull"], ["pos", "pos", "neg"])


@pytest.mark.parametrize("suffix", ["tar", "tar.gz", "tgz", "tar.bz2", "tar.xz", "tar.zst"])
def test_every_compression(tmp_path, suffix):
    path = tmp_path / f"aclImdb_v1.{suffix}"
    with fsspec.open(str(path), "wb", compression={"tar": None, "tgz": "gzip"}.get(suffix, "infer")) as file:
        file.write(written(tmp_path, FILES))
    source = opened(path, "aclImdb/train")
    taken = take(source)
    assert (taken.texts, taken.labels) == TRAIN
    assert source.labelled and source.n_pieces == 1 and source.nbytes == path.stat().st_size


def test_streams_of_several_parts_are_read_to_the_end(tmp_path):
    """Parallel compressors write such."""
    content = written(tmp_path, FILES)
    for name, compress in (("a.tar.gz", gzip.compress), ("a.tar.bz2", bz2.compress), ("a.tar.xz", lzma.compress)):
        parts = (content[:1000], content[1000:4000], content[4000:])
        (tmp_path / name).write_bytes(b"".join(map(compress, parts)))
        assert take(opened(tmp_path / name, "aclImdb/train")).texts == TRAIN[0]


def test_files_beside_folders_are_left_out_and_counted(tmp_path, caplog):
    path = write(tmp_path / "a.tar", FILES)
    take(opened(path, "aclImdb/train"))
    assert f"not taken for documents in {path}: files beside folders of documents (1)" in caplog.text


def test_the_order_is_that_of_the_archive(tmp_path):
    path = write(tmp_path / "a.tar", FILES)
    taken = take(opened(path, "aclImdb/train/neg", "aclImdb/test/pos", "aclImdb/train/pos"))
    assert taken.texts == ["fine", "good film", "wonderful", "naïve and dull"]
    assert taken.labels == ["pos", "pos", "pos", "neg"]


def test_one_folder_of_files_has_no_labels(tmp_path):
    path = write(tmp_path / "a.tar", FILES)
    source = opened(path, "aclImdb/train/pos")
    assert not source.labelled and take(source).texts == ["good film", "wonderful"]


def test_archives_of_classes_name_them(tmp_path):
    paths = [write(tmp_path / f"{name}.tar.gz", {"./1": f"one {name}"}, "w:gz") for name in ("spam", "ham")]
    source = ArchiveDocuments([(path, ()) for path in paths], TextColumns())
    taken = take(source)
    assert (taken.texts, taken.labels, source.n_pieces) == (["one spam", "one ham"], ["spam", "ham"], 2)


def test_a_folder_is_judged_by_its_first_files(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "LOOK_FILES", 3)
    files = {f"{number}": f"text {number}" for number in range(3)} | {"later/3": "text 3"}
    source = opened(write(tmp_path / "a.tar", files), "")
    assert not source.labelled and take(source).texts == [f"text {number}" for number in range(4)]
    del files["2"]
    source = opened(write(tmp_path / "b.tar", files), "")
    assert take(source).labels == ["later"]


def test_a_look_reads_no_more_than_it_must(tmp_path, monkeypatch):
    """What is behind the files that tell may be damaged, as far as opening goes."""
    files = {f"a/pos/{number}": os.urandom(1000) for number in range(2000)}
    content = written(tmp_path, files)
    (tmp_path / "b.tar").write_bytes(content[:300_000])
    opened(tmp_path / "b.tar", "a")
    with pytest.raises(InputError, match="damaged"):
        opened(tmp_path / "b.tar", "a/pos")


HOSTILE = {
    "/etc/nfs-dask-absolute": "absolute",
    "../outside.txt": "up",
    "a/pos/../../../outside2.txt": "up again",
    "a/pos/../../../../../../../../tmp/outside3.txt": "and away",
}


@pytest.fixture
def hostile(tmp_path):
    path = tmp_path / "in" / "hostile.tar"
    path.parent.mkdir()
    with tarfile.open(path, "w") as archive:
        add(archive, "a/pos/1.txt", b"good")
        for name, content in HOSTILE.items():
            add(archive, name, content.encode())
        add(archive, "a/pos/link.txt", kind=tarfile.SYMTYPE, linkname="/etc/passwd")
        add(archive, "a/pos/hard.txt", kind=tarfile.LNKTYPE, linkname="../../../etc/passwd")
        add(archive, "a/pos/dir", kind=tarfile.SYMTYPE, linkname="/tmp")
        add(archive, "a/pos/dir/through.txt", b"through")
        add(archive, "a/pos/null", kind=tarfile.CHRTYPE, devmajor=1, devminor=3)
        add(archive, "a/pos/pipe", kind=tarfile.FIFOTYPE)
        add(archive, "a/neg/2.txt", b"bad")
    return path


def test_members_that_lead_out_are_bad_input(hostile):
    with pytest.raises(InputError, match=r"hostile.tar: /etc/nfs-dask-absolute: .*leads out of the archive"):
        take(opened(hostile, "a"))
    taken = take(opened(hostile, "a", columns=SKIP))
    assert taken.texts == ["good", "through", "bad"] and taken.labels == ["pos", "dir", "neg"]
    assert taken.problems == [("broken", f"{hostile}: {name}") for name in HOSTILE]


def test_links_and_devices_are_no_documents(hostile, caplog):
    take(opened(hostile, "a", columns=SKIP))
    assert "links or devices (5)" in caplog.text


def tree(folder):
    return {path: path.lstat().st_mtime_ns for path in folder.rglob("*")}


def test_nothing_is_written_anywhere(hostile, tmp_path, monkeypatch):
    """Neither beside the archive, nor in the working and the temporary folder, nor where members lead."""
    work = tmp_path / "work" / "deep" / "er"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "work"))
    before = tree(tmp_path)
    opens = []
    monkeypatch.setattr("builtins.open", watched(open, opens))
    take(opened(hostile, "a", columns=SKIP))
    assert tree(tmp_path) == before
    assert not os.path.exists("/etc/nfs-dask-absolute") and not os.path.exists("/tmp/outside3.txt")
    assert not opens, "archives are opened without open(), and nothing else is"


def watched(function, calls):
    def call(file, mode="r", *args, **kwargs):
        calls.append((file, mode))
        return function(file, mode, *args, **kwargs)

    return call


def test_hidden_members_are_no_documents(tmp_path):
    files = {"./a/pos/._1.txt": b"\0\xff", "./a/pos/1.txt": "one", "./a/.git/2": "two", "a//neg/./3": "three"}
    taken = take(opened(write(tmp_path / "a.tar", files), "a"))
    assert (taken.texts, taken.labels) == (["one", "three"], ["pos", "neg"])


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_names_of_every_format(tmp_path, form):
    name = "/".join(["a", "klasse-ü" if form != tarfile.USTAR_FORMAT else "klasse", "x" * 90, "y" * 50])
    with tarfile.open(tmp_path / "a.tar", "w", format=form) as archive:
        add(archive, name, b"long")
        add(archive, "a/other/1", b"short")
    taken = take(opened(tmp_path / "a.tar", "a"))
    assert (taken.texts, taken.labels) == (["long", "short"], ["x" * 90, "other"])


def test_names_that_are_no_utf8_can_be_told(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.GNU_FORMAT, encoding="latin-1") as archive:
        add(archive, "gr\xfcn/1", b"leaf")
        add(archive, "gr\xfcn/2", b"\xff")
    taken = take(opened(tmp_path / "a.tar", "", columns=SKIP))
    assert taken.labels == [r"gr\xfcn"] and taken.problems == [("undecodable", rf"{tmp_path}/a.tar: gr\xfcn/2")]


def test_odd_pax_headers(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w", pax_headers={"comment": "global"}) as archive:
        add(archive, "a/pos/1", b"one", pax_headers={"path": "a/neg/new\nline", "uid": "nonsense", "mtime": "x"})
        add(archive, "a/pos/2", b"two", pax_headers={"path": "../../up"})
    taken = take(opened(tmp_path / "a.tar", "a", columns=SKIP))
    assert taken.labels == ["neg"] and taken.problems == [("broken", f"{tmp_path}/a.tar: ../../up")]


def sparse_member(name, size, pieces, content):
    """A header of GNU's old sparse format: pieces are (offset, length)."""
    member = tarfile.TarInfo(name)
    member.type, member.size = tarfile.GNUTYPE_SPARSE, len(content)
    header = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    for i, (offset, length) in enumerate(pieces):
        header[386 + 24 * i : 386 + 24 * i + 24] = b"%011o\0%011o\0" % (offset, length)
    header[483:495] = b"%011o\0" % size
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + content.ljust(-(-len(content) // 512) * 512, b"\0")


def test_sparse_members(tmp_path):
    end = b"\0" * 1024
    one = sparse_member("a/pos/1", 10, [(0, 2), (8, 2)], b"abyz")
    huge = sparse_member("a/pos/2", 1 << 32, [(0, 2)], b"ab")
    (tmp_path / "a.tar").write_bytes(one + huge + one + end)
    taken = take(opened(tmp_path / "a.tar", "a", columns=SKIP))
    assert taken.texts == ["ab\0\0\0\0\0\0yz"] * 2
    assert taken.problems == [("broken", f"{tmp_path}/a.tar: a/pos/2")] and "4.0 GiB" in taken.whats[0]


def test_a_document_that_is_too_large_is_refused_unread(tmp_path, monkeypatch):
    path = write(tmp_path / "a.tar", {"a/pos/1": "x" * 100, "a/pos/2": "small"})
    monkeypatch.setattr(archives, "DOCUMENT_NBYTES", 50)
    with pytest.raises(InputError, match=r"a/pos/1: a document of 100 B, where"):
        take(opened(path, "a"))
    assert take(opened(path, "a", columns=SKIP)).texts == ["small"]


def raw(name, size, kind=tarfile.REGTYPE):
    member = tarfile.TarInfo(name)
    member.size, member.type = size, kind
    return member.tobuf(tarfile.GNU_FORMAT)


def test_a_header_that_would_fill_the_memory_is_refused(tmp_path):
    (tmp_path / "a.tar").write_bytes(raw("././@PaxHeader", 1 << 40, tarfile.XHDTYPE) + bytes(4096))
    with pytest.raises(InputError, match=r"a name or header of 1.0 TiB"):
        opened(tmp_path / "a.tar", "")


def test_a_size_below_zero_ends_no_worker(tmp_path):
    (tmp_path / "a.tar").write_bytes(raw("a/1", -512) + bytes(4096))
    started = time.monotonic()
    with pytest.raises(InputError, match="damaged"):
        opened(tmp_path / "a.tar", "")
    assert time.monotonic() - started < 10


def test_archives_that_are_cut_short_are_told(tmp_path):
    """Wherever a plain archive is cut, and wherever a compressed one is."""
    whole = written(tmp_path, {f"a/{label}/{i}": f"{label} {i}" for label in "xyz" for i in range(3)})
    end = whole.rstrip(b"\0")
    needed = -(-len(end) // 512) * 512  # members without the end mark
    for path, content, cuts in (
        (tmp_path / "a.tar", whole, [1, 511, 512, 700, 1024, 2048, needed - 512, needed, needed + 511]),
        (tmp_path / "a.tar.gz", gzip.compress(whole), [1, 5, 40, -9, -8, -1]),
        (tmp_path / "a.tar.bz2", bz2.compress(whole), [1, 5, 40, -9, -1]),
        (tmp_path / "a.tar.xz", lzma.compress(whole), [1, 5, 40, -20, -1]),
    ):
        for cut in cuts:
            path.write_bytes(content[:cut])
            with pytest.raises(InputError, match=rf"{path.name}: the archive is damaged.*on_error"):
                take(opened(path, "a"))
            taken = take(opened(path, "a", columns=SKIP))
            assert taken.problems == [("broken", str(path))] and taken.seen == len(taken.texts) + 1


def test_a_changed_byte_is_noticed_unless_it_changes_nothing(tmp_path):
    files = {f"a/{label}/{i}": f"{label} {i} " * 20 for label in "xy" for i in range(4)}
    whole = bytearray(gzip.compress(written(tmp_path, files)))
    rng, noticed = random.Random(7), 0
    for _ in range(60):
        changed = bytearray(whole)
        changed[rng.randrange(10, len(whole))] ^= 1 << rng.randrange(8)
        (tmp_path / "a.tar.gz").write_bytes(changed)
        try:
            texts = take(opened(tmp_path / "a.tar.gz", "a")).texts
        except InputError as error:
            noticed += "a.tar.gz" in str(error)
        else:
            assert texts == list(files.values())
    assert noticed > 50


def test_garbage_never_ends_otherwise_than_by_naming_the_archive(tmp_path):
    whole = written(tmp_path, FILES)
    rng, errors = random.Random(11), []
    path = tmp_path / "a.tar"
    for _ in range(150):
        changed = bytearray(whole)
        block = 512 * rng.randrange(len(whole) // 512)
        for _ in range(rng.randrange(1, 4)):
            changed[min(block + rng.randrange(512), len(whole) - 1)] = rng.randrange(256)
        header = changed[block : block + 512]
        header[148:156] = b" " * 8
        if rng.random() < 0.7:  # make the checksum right, so that nonsense is taken for a header
            changed[block + 148 : block + 156] = b"%06o\0 " % sum(header)
        path.write_bytes(changed)
        try:
            take(opened(path, "aclImdb/train"))
        except InputError as error:
            errors.append(str(error))
    assert len(errors) > 20 and all(str(path) in error for error in errors)


def test_what_is_no_archive_is_named(tmp_path):
    for content in (b"", b"no archive " * 100, b"\x1f\x8bno gzip either", gzip.compress(b"text " * 500)):
        (tmp_path / "a.tar.gz").write_bytes(content)
        with pytest.raises(InputError, match=r"a.tar.gz: the archive is damaged or no tar archive"):
            opened(tmp_path / "a.tar.gz", "")
    with pytest.raises(StoreError, match=r"missing.tar is missing"):
        opened(tmp_path / "missing.tar", "")
    write(tmp_path / "empty.tar", {})
    with pytest.raises(InputError, match=r"empty.tar has no files"):
        opened(tmp_path / "empty.tar", "")


def test_joined_archives_are_told(tmp_path):
    one = written(tmp_path, {"a/x/1": "one"})
    two = written(tmp_path, {"a/x/2": "two"})
    (tmp_path / "a.tar").write_bytes(one + two)
    with pytest.raises(InputError, match="another archive follows"):
        take(opened(tmp_path / "a.tar", "a"))
    (tmp_path / "a.tar").write_bytes(one + b"garbage of a tape" * 100)
    assert take(opened(tmp_path / "a.tar", "a")).texts == ["one"]


def test_undecodable_members(tmp_path):
    path = write(tmp_path / "a.tar", {"a/x/1": "caf\xe9".encode("latin-1"), "a/y/2": "plain"})
    with pytest.raises(InputError, match=r"a.tar: a/x/1: the byte 0xe9"):
        take(opened(path, "a"))
    assert take(opened(path, "a", columns=SKIP)).problems == [("undecodable", f"{path}: a/x/1")]
    assert take(opened(path, "a", columns=TextColumns(encoding="latin-1"))).texts == ["café", "plain"]


def test_a_folder_that_is_not_inside_is_named(tmp_path):
    path = write(tmp_path / "a.tar", FILES)
    with pytest.raises(InputError, match=r"no files in a folder aclImdb/trian; name .* such as aclImdb, aclImdb/test"):
        opened(path, "aclImdb/trian")
    with pytest.raises(InputError, match=r"aclImdb/train/pos is in .*would count twice"):
        opened(path, "aclImdb/train", "aclImdb/train/pos")


def test_which_part_of_a_path_is_an_archive(tmp_path):
    (tmp_path / "folder.tar").mkdir()
    write(tmp_path / "folder.tar" / "a.TGZ", FILES, "w:gz")
    assert split_archive(f"{tmp_path}/folder.tar/a.TGZ/x/./y/") == (f"{tmp_path}/folder.tar/a.TGZ", ("x", "y"))
    assert split_archive(f"{tmp_path}/folder.tar/b.txt") is None
    assert split_archive("s3://bucket/a.tar.gz/x") == ("s3://bucket/a.tar.gz", ("x",))


def test_an_archive_behind_a_url(tmp_path, s3):
    path = write(tmp_path / "a.tar.gz", FILES, "w:gz")
    fsspec.filesystem("s3").put_file(path, f"{s3}/a.tar.gz")
    source = opened(f"{s3}/a.tar.gz", "aclImdb/train")
    assert take(source).texts == TRAIN[0]
    assert source.fingerprint == opened(f"{s3}/a.tar.gz", "aclImdb/train").fingerprint
    assert source.fingerprint != opened(f"{s3}/a.tar.gz", "aclImdb/test").fingerprint
