"""Documents of zip archives, against what was put into them."""

from __future__ import annotations

import os
import struct
import zipfile

import pytest
from click.testing import CliRunner

import nfs_dask as nfs
from nfs_dask.cli.main import cli
from nfs_dask.documents import archive_members
from nfs_dask.documents.archives import ArchiveDocuments, split_archive
from nfs_dask.documents.document_source import TextColumns
from nfs_dask.errors import InputError
from tests.helpers.taking import take

FAIL, SKIP = TextColumns(), TextColumns(on_error="skip")
FILES = {
    "mail/README": "how they were collected",
    "mail/train/ham/1.txt": "dear all",
    "mail/train/ham/2.txt": "naïve question",
    "mail/train/spam/1.txt": "win now",
    "mail/train/spam/.hidden": "not a document",
    "mail/test/ham/3.txt": "hello",
}
TRAIN = (["dear all", "naïve question", "win now"], ["ham", "ham", "spam"])


def write(path, files=FILES, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.mkdir("mail")
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def opened(path, folder="mail/train", columns=FAIL):
    return ArchiveDocuments([(str(path), tuple(folder.split("/")) if folder else ())], columns)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_documents_and_their_folders(tmp_path, method):
    taken = take(opened(write(tmp_path / "mail.zip", method=method)))
    assert (taken.texts, taken.labels) == TRAIN


def test_it_is_ingested_like_any_archive(tmp_path):
    write(tmp_path / "MAIL.ZIP")
    data = nfs.ingest(tmp_path / "MAIL.ZIP" / "mail" / "train", tmp_path / "s.zarr")
    assert data.n_rows == 3 and data.classes.tolist() == ["ham", "spam"]
    done = CliRunner().invoke(cli, ["ingest", str(tmp_path / "MAIL.ZIP" / "mail" / "test"), str(tmp_path / "t.zarr")])
    assert done.exit_code == 0, done.output
    assert split_archive("a/b.zip/c") == ("a/b.zip", ("c",))


def test_names_that_lead_out_links_and_what_is_too_large(tmp_path, monkeypatch):
    path = write(tmp_path / "a.zip", FILES | {"../mail/train/ham/out.txt": "out", "/mail/train/ham/abs.txt": "abs"})
    link = zipfile.ZipInfo("mail/train/ham/link.txt")
    link.create_system, link.external_attr = 3, 0o120777 << 16
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(link, "/etc/passwd")
        archive.writestr("mail/train/ham/huge.txt", "x" * 5000, zipfile.ZIP_DEFLATED)
    monkeypatch.setattr("nfs_dask.documents.archives.DOCUMENT_NBYTES", 1000)
    taken = take(opened(path, columns=SKIP))
    assert (taken.texts, taken.labels) == TRAIN
    told = " ".join(taken.whats)
    assert "leads out of the archive" in told and "are allowed" in told
    with pytest.raises(InputError, match="leads out"):
        take(opened(path))


def test_no_more_is_unpacked_than_a_member_said(tmp_path):
    """A member of a million bytes that says it has ten: the checksum is of more than these."""
    path = write(tmp_path / "a.zip", {"mail/train/ham/1.txt": "x" * 1_000_000, "mail/train/spam/1.txt": "fine"})
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        place = -1
        while (place := content.find(mark, place + 1)) >= 0:
            if struct.unpack_from("<I", content, place + offset)[0] == 1_000_000:
                struct.pack_into("<I", content, place + offset, 10)
    path.write_bytes(content)
    taken = take(opened(path, columns=SKIP))
    assert taken.texts == ["fine"]
    assert "damaged" in taken.whats[0]


def test_encrypted_members_are_refused_in_words(tmp_path):
    path = write(tmp_path / "a.zip")
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = -1
        while (place := content.find(mark, place + 1)) >= 0:
            content[place + offset] |= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="encrypted; unpack the archive"):
        take(opened(path))
    taken = take(opened(path, columns=SKIP))
    assert taken.texts == [] and " ".join(taken.whats).count("encrypted") == 3


def test_members_that_share_their_bytes_are_refused(tmp_path):
    path = write(tmp_path / "a.zip", {"mail/train/ham/1.txt": os.urandom(50_000)})
    content = bytearray(path.read_bytes())
    directory = content.find(b"PK\x01\x02", content.find(b"1.txt") + 1)
    entry = bytes(content[directory : content.find(b"PK\x05\x06")])
    end = bytearray(content[content.find(b"PK\x05\x06") :])
    struct.pack_into("<HHI", end, 8, 12, 12, 10 * len(entry) + (len(content) - len(end) - len(entry) * 1 - directory))
    start = content.find(b"PK\x01\x02")
    struct.pack_into("<HHII", end, 8, 11, 11, directory - start + 10 * len(entry), start)
    path.write_bytes(bytes(content[:directory]) + 10 * entry + bytes(end))
    with pytest.raises(InputError, match="overlap"):
        take(opened(path))


def test_a_long_list_of_members_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = write(tmp_path / "a.zip", {f"mail/train/ham/{i:040d}.txt": "x" for i in range(3000)})
    monkeypatch.setattr(archive_members, "DIRECTORY_NBYTES", 100_000)
    with pytest.raises(InputError, match="the list of its members takes .* unpack it"):
        take(opened(path))


@pytest.mark.parametrize(
    "content", [b"", b"no archive at all", b"PK\x05\x06" + b"\xff" * 18, b"PK\x03\x04" + b"\0" * 60]
)
def test_what_is_no_archive(tmp_path, content):
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(InputError, match="damaged or no zip archive|has no files"):
        take(opened(tmp_path / "a.zip"))


def test_damage_anywhere_is_told_or_harmless(tmp_path):
    """Each byte turned over in turn: what comes out is what was put in, or a problem in words."""
    path = write(tmp_path / "a.zip", {"h/1.txt": "dear all", "s/1.txt": "win now"})
    content = path.read_bytes()
    for place in range(0, len(content), 3):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        try:
            taken = take(opened(path, "", columns=SKIP))
        except InputError:
            continue
        assert set(taken.texts) <= {"dear all", "win now"}


def test_tables_in_an_archive_are_not_taken_for_texts(tmp_path):
    path = write(tmp_path / "reviews.csv.zip", {"reviews.csv": "text,label\na,b\n"})
    with pytest.raises(InputError, match=r"holds a table, reviews\.csv.*unpack it"):
        take(opened(path, ""))
