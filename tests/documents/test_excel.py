"""Documents of Excel workbooks, against what openpyxl wrote into them."""

from __future__ import annotations

import datetime as dt
import struct
import sys
import zipfile

import openpyxl
import pytest
from click.testing import CliRunner

import nfs_dask as nfs
from nfs_dask.cli.main import cli
from nfs_dask.documents import excel
from nfs_dask.documents.document_source import TextColumns
from nfs_dask.documents.excel import WorkbookDocuments
from nfs_dask.errors import DataWarning, InputError
from tests.helpers.taking import take

COLUMNS = TextColumns(text=("text",), label="stars")
ROWS = [("stars", "text", "date"), (1, "dull", dt.date(2024, 5, 1)), (5, "naïve, good"), (5, None, 3.5), (1, 42)]


def write(path, rows=ROWS, **sheets):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for title, content in sheets.items():
        sheet = book.create_sheet(title)
        for row in content:
            sheet.append(row)
    book.save(path)
    return str(path)


def opened(path, columns=COLUMNS):
    return WorkbookDocuments((str(path),), columns)


def test_rows_are_documents(tmp_path):
    taken = take(opened(write(tmp_path / "a.xlsx")))
    assert taken.texts == ["dull", "naïve, good", "", "42"]
    assert taken.labels == [1, 5, 5, 1]


def test_it_is_ingested_like_any_table(tmp_path):
    path = write(tmp_path / "reviews.xlsx")
    data = nfs.ingest(path, tmp_path / "s.zarr", label_column="stars", keep=["date"], where={"stars": ["1", "5"]})
    assert data.n_rows == 4 and data.classes.tolist() == [1, 5]
    done = CliRunner().invoke(cli, ["ingest", path, "--label-column", "stars", str(tmp_path / "t.zarr")])
    assert done.exit_code == 0, done.output
    model = nfs.SparseMultinomialNB(k=2).fit(data).save(tmp_path / "m")
    assert model is None
    done = CliRunner().invoke(cli, ["evaluate", str(tmp_path / "m"), path, "--label-column", "stars"])
    assert done.exit_code == 0, done.output


def test_empty_rows_are_passed_over_and_others_keep_their_numbers(tmp_path):
    path = write(tmp_path / "a.xlsx", [ROWS[0], (None, None), (None, "no label"), (1, "good")])
    with pytest.raises(InputError, match=r"a\.xlsx, row 3: the document has no label"):
        take(opened(path))
    assert take(opened(path, TextColumns(text=("text",), label="stars", on_error="skip"))).texts == ["good"]


def test_cells_far_away_take_no_memory_for_those_between(tmp_path):
    book = openpyxl.Workbook()
    for row in ROWS:
        book.active.append(row)
    book.active.cell(30_000, 16_000, "far")
    book.save(tmp_path / "a.xlsx")
    assert take(opened(tmp_path / "a.xlsx", TextColumns(text=("text",)))).seen == 5


def test_other_sheets_are_told(tmp_path):
    path = write(tmp_path / "a.xlsx", More=[("text",), ("x",)], Last=[])
    with pytest.warns(DataWarning, match="more sheets than the first, which is read: 'More', 'Last'"):
        opened(path)


def test_columns_that_are_not_there_are_named(tmp_path):
    path = write(tmp_path / "a.xlsx")
    with pytest.raises(InputError, match="text_column='body' is not among them"):
        opened(path, TextColumns(text=("body",)))
    with pytest.raises(InputError, match="is empty; the first row"):
        opened(write(tmp_path / "b.xlsx", []))


def test_what_unpacks_to_too_much_is_refused_unread(tmp_path, monkeypatch):
    path = write(tmp_path / "a.xlsx", [ROWS[0], *[(1, "x" * 1000)] * 100])
    monkeypatch.setattr(excel, "WORKBOOK_NBYTES", 1000)
    with pytest.raises(InputError, match="unpacks to .* where 1,000 bytes are allowed|unpacks to .* are allowed"):
        opened(path)


def test_a_member_that_unpacks_to_more_than_it_says_is_damage(tmp_path):
    path = write(tmp_path / "a.xlsx")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/bomb.xml", b"0" * 1_000_000)
    content = bytearray((tmp_path / "a.xlsx").read_bytes())
    for mark, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        place = -1
        while (place := content.find(mark, place + 1)) >= 0:
            if struct.unpack_from("<I", content, place + offset)[0] == 1_000_000:
                struct.pack_into("<I", content, place + offset, 10)
    (tmp_path / "a.xlsx").write_bytes(content)
    with pytest.raises(InputError, match="damaged, encrypted or no workbook"):
        opened(path)


def test_damage_anywhere_is_told_or_harmless(tmp_path):
    content = (tmp_path / write(tmp_path / "a.xlsx")).read_bytes()
    for place in range(0, len(content), 97):
        (tmp_path / "a.xlsx").write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        try:
            taken = take(opened(tmp_path / "a.xlsx"))
        except InputError:
            continue
        assert taken.texts == ["dull", "naïve, good", "", "42"]


def test_shared_texts_are_read_and_their_memory_is_planned_for(tmp_path):
    """As Excel itself writes them: cells that number the texts of one list."""
    plain = write(tmp_path / "a.xlsx", [("text",), ("one",)])
    texts = [f"text {i} " + "of some length " * 10 for i in range(3000)]
    cells = "".join(f'<row r="{i + 2}"><c r="A{i + 2}" t="s"><v>{i}</v></c></row>' for i in range(len(texts)))
    head = '<row r="1"><c r="A1" t="inlineStr"><is><t>text</t></is></c></row>'
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    strings = "".join(f"<si><t>{text}</t></si>" for text in texts)
    path = tmp_path / "b.xlsx"
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("sheet1.xml"):
                content = f"<worksheet {space}><sheetData>{head}{cells}</sheetData></worksheet>".encode()
            if name.endswith("Content_Types].xml") and b"sharedStrings" not in content:
                kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
                entry = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}"/></Types>'
                content = content.replace(b"</Types>", entry.encode())
            if not name.endswith("sharedStrings.xml"):
                new.writestr(name, content)
        new.writestr("xl/sharedStrings.xml", f"<sst {space}>{strings}</sst>")
    source = opened(path, TextColumns(text=("text",)))
    assert take(source).texts == texts
    assert source.import_nbytes > excel.OPENPYXL_NBYTES + sum(map(len, texts))


@pytest.mark.parametrize("content", [b"", b"text,label\n", b"\xd0\xcf\x11\xe0" + b"\0" * 600])
def test_what_is_no_workbook(tmp_path, content):
    (tmp_path / "a.xlsx").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.xlsx"):
        opened(tmp_path / "a.xlsx")


def test_without_the_library_it_is_said_what_to_install(tmp_path, monkeypatch):
    path = write(tmp_path / "a.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(InputError, match=r"pip install 'nfs-dask\[excel\]'"):
        opened(path)
