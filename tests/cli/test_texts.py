"""The command line on documents: ingest, info, predict and evaluate of raw texts."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import nfs_dask as nfs
from tests.helpers.commands import as_json, run

HAM = ["Lunch on Tuesday with the team", "The meeting on Tuesday moved", "Notes of the team meeting", "Été à la mer"]
SPAM = ["Cheap watches, best price", "Best price for cheap pills <script>", "Win a cheap watch now", "Cheap now"]
TEXTS = [text for pair in zip(HAM, SPAM, strict=True) for text in pair]
LABELS = ["ham", "spam, cheap"] * 4


# Warnings are what this command line prints; elsewhere in the tests they are errors.
told = pytest.mark.filterwarnings("default::nfs_dask.errors.DataWarning")


def write_csv(file: Path, texts: list[str] = TEXTS, labels: list[str] = LABELS, text: str = "text") -> Path:
    with open(file, "w", newline="", encoding="utf-8") as opened:
        csv.writer(opened).writerows([[text, "folder"], *zip(texts, labels, strict=True)])
    return file


def write_jsonl(file: Path, rows: list[dict[str, Any]]) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def matrix(store: Path) -> tuple[sp.csr_matrix, list[str], list[Any] | None]:
    """All of a store: the matrix, the names of its columns, and the label of each row."""
    dataset = nfs.open_dataset(store)
    blocks = list(dataset.source.blocks(0, dataset.source.n_blocks))
    X = sp.vstack([sp.csr_matrix((b.data, b.indices, b.indptr), shape=(b.n_rows, b.n_features)) for b in blocks])
    codes = np.concatenate([block.codes for block in blocks])
    labels = None if dataset.classes is None else dataset.classes[codes].tolist()
    names = dataset.names(np.arange(dataset.n_features))
    assert names is not None
    return X, list(names), labels


def assert_made_by(store: Path, vectorizer: Any, texts: list[str] = TEXTS) -> None:
    expected = vectorizer.fit(texts).transform(texts)
    X, names, _ = matrix(store)
    assert names == vectorizer.get_feature_names_out().tolist()
    np.testing.assert_array_equal(X.toarray(), expected.toarray())


# Sources


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".jsonl", ".parquet"])
def test_tables_of_texts(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"mail{suffix}"
    rows = [{"text": text, "folder": label} for text, label in zip(TEXTS, LABELS, strict=True)]
    if suffix == ".parquet":
        pytest.importorskip("pandas").DataFrame(rows).to_parquet(file)
    elif suffix == ".jsonl":
        write_jsonl(file, rows)
    else:
        written = io.StringIO()
        writer = csv.writer(written, delimiter="\t" if suffix == ".tsv" else ",")
        writer.writerows([["text", "folder"], *zip(TEXTS, LABELS, strict=True)])
        content = written.getvalue().encode()
        file.write_bytes(gzip.compress(content) if suffix.endswith(".gz") else content)
    store = tmp_path / "mail.zarr"
    values = as_json("ingest", file, "--label-column", "folder", store)
    assert (values["rows"], values["classes"]) == (8, ["ham", "spam, cheap"])
    assert values["report"]["documents_seen"] == 8
    assert_made_by(store, CountVectorizer())
    assert matrix(store)[2] == LABELS


def test_lines_of_text_with_labels_beside_them(tmp_path: Path) -> None:
    (tmp_path / "mail.txt").write_text("\n".join(TEXTS))
    (tmp_path / "labels.txt").write_text("\n".join(["ham", "a\u2028b"] * 4) + "\n")
    run("ingest", tmp_path / "mail.txt", "--labels", tmp_path / "labels.txt", tmp_path / "mail.zarr")
    assert_made_by(tmp_path / "mail.zarr", CountVectorizer())
    assert matrix(tmp_path / "mail.zarr")[2] == ["ham", "a\u2028b"] * 4, "only line feeds end a line"


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Two classes of four files each."""
    for label, texts in (("ham", HAM), ("spam", SPAM)):
        (tmp_path / "mail" / "train" / label).mkdir(parents=True)
        for number, text in enumerate(texts):
            (tmp_path / "mail" / "train" / label / f"{number}.txt").write_text(text)
    return tmp_path / "mail"


@pytest.mark.parametrize("where", ["folder", "archive", "classes of an archive"])
def test_a_folder_for_each_class(tmp_path: Path, folders: Path, where: str) -> None:
    archive = tmp_path / "mail.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folders / "train", "mail/train")
    train = f"{archive}/mail/train"
    sources = {"folder": [folders / "train"], "archive": [train]}.get(where, [f"{train}/ham", f"{train}/spam"])
    run("ingest", *sources, tmp_path / "mail.zarr")
    X, names, labels = matrix(tmp_path / "mail.zarr")
    assert labels is not None and sorted(labels) == ["ham"] * 4 + ["spam"] * 4
    vectorizer = CountVectorizer().fit(TEXTS)
    assert names == vectorizer.get_feature_names_out().tolist()
    is_spam = np.array(labels) == "spam"
    for rows, texts in ((~is_spam, HAM), (is_spam, SPAM)):
        assert X[rows].sum(axis=0).tolist() == vectorizer.transform(texts).sum(axis=0).tolist()


def test_regions_of_a_document(tmp_path: Path) -> None:
    rows = [{"subject": s, "body": b, "folder": "ham"} for s, b in zip(HAM, SPAM, strict=True)]
    file = write_jsonl(tmp_path / "mail.jsonl", rows)
    arguments = ["--region", "subject", "--region", "body", "--label-column", "folder"]
    run("ingest", file, *arguments, tmp_path / "mail.zarr")
    vectorizer = CountVectorizer().fit(HAM + SPAM)
    terms = vectorizer.get_feature_names_out().tolist()
    X, names, _ = matrix(tmp_path / "mail.zarr")
    assert names == [f"{region}:{term}" for region in ("subject", "body") for term in terms]
    np.testing.assert_array_equal(X.toarray(), sp.hstack([vectorizer.transform(t) for t in (HAM, SPAM)]).toarray())
    text = as_json("info", tmp_path / "mail.zarr")["text"]
    assert (text["regions"], text["terms"]) == (["subject", "body"], len(terms))
    assert "regions      subject, body\n" in run("info", tmp_path / "mail.zarr").stdout


# Terms


@pytest.mark.parametrize(
    ("options", "theirs"),
    [
        (
            ["--ngrams", "1,2", "--no-lowercase", "--strip-accents", "unicode", "--stop-words", "stop.txt"],
            CountVectorizer(ngram_range=(1, 2), lowercase=False, strip_accents="unicode", stop_words=["the", "of"]),
        ),
        (
            ["--analyzer", "char_wb", "--ngrams", "3", "--min-df", "0.25", "--max-df", "0.4", "--binary"],
            CountVectorizer(analyzer="char_wb", ngram_range=(3, 3), min_df=0.25, max_df=0.4, binary=True),
        ),
        (
            ["--token-pattern", r"\b[a-z]\w*", "--stop-words", "english", "--min-df", "2", "--max-df", "3"],
            CountVectorizer(token_pattern=r"\b[a-z]\w*", stop_words="english", min_df=2, max_df=3),
        ),
        (
            ["--vocabulary", "words.txt", "--ngrams", "1,2"],
            CountVectorizer(vocabulary=["price", "never", "cheap", "team meeting"], ngram_range=(1, 2)),
        ),
        (["--tfidf", "--sublinear-tf", "--norm", "l1"], TfidfVectorizer(sublinear_tf=True, norm="l1")),
        (["--tfidf", "--norm", "none"], TfidfVectorizer(norm=None)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_of_terms_are_those_of_scikit_learn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], theirs: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("stop.txt").write_text("the\nof\n")
    Path("words.txt").write_text("price\nnever\ncheap\nteam meeting\n")
    run("ingest", write_csv(Path("mail.csv")), *options, "mail.zarr")
    assert_made_by(Path("mail.zarr"), theirs)


def test_the_most_frequent_terms_and_columns_of_hashes(tmp_path: Path) -> None:
    file = write_csv(tmp_path / "mail.csv")
    run("ingest", file, "--max-features", 2, tmp_path / "most.zarr")
    assert matrix(tmp_path / "most.zarr")[1] == ["cheap", "the"], "four times, and three times"
    assert "2 kept" in run("info", tmp_path / "most.zarr").stdout
    values = as_json("ingest", file, "--hashed", 3, tmp_path / "hashed.zarr")
    X, names, _ = matrix(tmp_path / "hashed.zarr")
    counts = CountVectorizer().fit_transform(TEXTS)
    assert len(set(names)) == 8
    assert X.sum(axis=1).tolist() == counts.sum(axis=1).tolist(), "terms are added up, and none is lost"
    assert values["report"]["terms"] == counts.shape[1]
    assert "8 columns of hashes" in run("info", tmp_path / "hashed.zarr").stdout


# More documents


def test_appended_documents_are_counted_under_the_terms_of_the_store(tmp_path: Path) -> None:
    first = write_csv(tmp_path / "first.csv", TEXTS[:6], LABELS[:6])
    more = write_csv(tmp_path / "more.csv", TEXTS[6:], LABELS[6:])
    options = ["--label-column", "folder", "--tfidf", "--min-df", 2, "--max-features", 3]
    run("ingest", first, *options, tmp_path / "mail.zarr")
    before = matrix(tmp_path / "mail.zarr")[1]
    assert len(before) == 3
    vectorizer = TfidfVectorizer(vocabulary=before).fit(TEXTS[:6])
    for changed in (options, [*options[:3], "--max-features", 1], [*options[:3], "--min-df", 0.9, "--max-df", 1]):
        run("ingest", more, *changed, "--append", tmp_path / "mail.zarr")
    X, names, labels = matrix(tmp_path / "mail.zarr")
    assert names == before
    expected = vectorizer.transform(TEXTS[:6] + 3 * TEXTS[6:])
    np.testing.assert_array_equal(X.toarray(), expected.toarray())
    assert labels == LABELS[:6] + 3 * LABELS[6:]
    assert as_json("info", tmp_path / "mail.zarr")["text"]["report"]["documents_seen"] == 12
    error = run("ingest", more, "--label-column", "folder", "--append", tmp_path / "mail.zarr", code=3).stderr
    assert "read with --tfidf" in error
    assert "append" in run("ingest", more, tmp_path / "mail.zarr", code=3).stderr


# Bad input


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """Five documents, of which the first and the last are good."""
    rows = [{"text": text, "folder": label} for text, label in zip(TEXTS[:2], LABELS, strict=False)]
    lines = [rows[0], {"text": None, "folder": "ham"}, {"text": "no label"}]
    file = write_jsonl(tmp_path / "bad.jsonl", lines)
    file.write_text(file.read_text() + '{"text": \n' + json.dumps(rows[1]) + "\n")
    return file


def test_a_bad_document_is_named_with_file_and_line(tmp_path: Path, bad: Path) -> None:
    arguments = ["ingest", bad, "--label-column", "folder", tmp_path / "mail.zarr"]
    error = run(*arguments, code=3)
    assert error.stdout == ""
    assert f"Error: {bad}, line 2: the text is missing" in error.stderr
    assert "--on-error skip" in error.stderr
    assert as_json(*arguments, code=3)["kind"] == "InputError"
    assert list(tmp_path.iterdir()) == [bad], "nothing is left behind"


@told
def test_bad_documents_can_be_left_out_and_are_told(tmp_path: Path, bad: Path) -> None:
    store = tmp_path / "mail.zarr"
    result = run("ingest", bad, "--label-column", "folder", "--on-error", "skip", "--json", store)
    report = json.loads(result.stdout)["report"]
    assert "3 of 5 documents were left out" in result.stderr
    assert (report["documents_seen"], report["left_out"]) == (5, {"missing": 1, "label": 1, "broken": 1})
    assert [one["where"] for one in report["examples"]] == [f"{bad}, line {line}" for line in (2, 3, 4)]
    assert as_json("info", store)["text"]["report"] == report
    shown = run("info", store).stdout
    assert "documents    5 seen, 3 left out: 1 broken, 1 without a label, 1 without a text\n" in shown
    assert all(f"{bad}, line {line}: " in shown for line in (2, 3, 4))


def test_empty_documents_are_rows_and_are_told(tmp_path: Path) -> None:
    texts = ["", *TEXTS, "  "]
    store = tmp_path / "mail.zarr"
    result = run("ingest", write_csv(tmp_path / "mail.csv", texts, ["ham", *LABELS, "ham"]), store)
    assert result.stdout.endswith("\n2 documents are empty\n")
    assert_made_by(store, CountVectorizer(), texts)
    assert "documents    10 seen, none left out; 2 empty\n" in run("info", store).stdout
    run("ingest", tmp_path / "mail.csv", "--label-column", "folder", tmp_path / "labels.zarr")
    model = tmp_path / "spam.model"
    run("fit", tmp_path / "labels.zarr", model)
    values = as_json("predict", model, tmp_path / "mail.csv")
    assert (values["rows"], values["labels"][0], values["labels"][-1]) == (list(range(10)), "ham", "ham")
    assert values["probabilities"][0] == values["probabilities"][-1] == pytest.approx(0.6)
    values = as_json("evaluate", model, tmp_path / "mail.csv", "--label-column", "folder")
    assert (values["n"], values["left_out"]) == (10, 0)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("mail.csv", b"", "empty.*name the columns"),
        ("mail.csv", b"text,folder\n", "no documents"),
        ("mail.txt", b"", "no documents"),
        ("mail.jsonl", b"", "no documents"),
        ("mail.parquet", b"PAR1 no it is not", "Parquet"),
        ("mail.csv.gz", b"text\nplain\n", "mail.csv.gz"),
        ("mail.csv", b"body\ngood day\n", "'body'.*--text-column 'text'"),
        ("mail.txt", b"caf\xe9 noir\n", "line 1: .*0xe9.*encoding"),
        ("mail.txt", b". ! ?\n", "no term is left"),
        ("mail.docx", b"text", "no known format"),
        (None, b"", "missing"),
    ],
)
def test_input_that_makes_no_store_is_3(tmp_path: Path, name: str | None, content: bytes, said: str) -> None:
    if name is not None:
        (tmp_path / name).write_bytes(content)
    result = run("ingest", tmp_path / (name or "nowhere.csv"), tmp_path / "mail.zarr", code=3)
    assert result.stdout == ""
    assert re.search(said, result.stderr), result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "mail.zarr").exists()


def test_a_folder_without_documents_is_3(tmp_path: Path) -> None:
    (tmp_path / "mail").mkdir()
    assert "holds no documents" in run("ingest", tmp_path / "mail", tmp_path / "mail.zarr", code=3).stderr


@pytest.mark.parametrize(
    "wrong",
    [
        ["--ngrams", "one"],
        ["--ngrams", "1,2,3"],
        ["--min-df", "some"],
        ["--analyzer", "bytes"],
        ["--hashed", "0"],
        ["--max-features", "0"],
        ["--on-error", "ignore"],
        ["--labels", "labels.txt", "--label-column", "folder"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_2(tmp_path: Path, wrong: list[str]) -> None:
    result = run("ingest", write_csv(tmp_path / "mail.csv"), *wrong, tmp_path / "mail.zarr", code=2)
    assert result.stderr.startswith("Usage: nfs ingest")


# From a store to predictions


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model of the eight documents."""
    file = write_csv(tmp_path / "mail.csv")
    run("ingest", file, "--label-column", "folder", tmp_path / "mail.zarr")
    run("fit", tmp_path / "mail.zarr", tmp_path / "spam.model", "-k", 6)
    return tmp_path / "spam.model"


def test_what_models_say_of_raw_files(tmp_path: Path, model: Path) -> None:
    lines = run("predict", model, tmp_path / "mail.csv").stdout
    rows = list(csv.reader(io.StringIO(lines)))
    loaded = nfs.load_model(model)
    assert rows[0] == ["row", "label", "probability"]
    assert [row[0] for row in rows[1:]] == [str(i) for i in range(8)]
    assert [row[1] for row in rows[1:]] == loaded.predict(TEXTS).tolist()
    assert '"spam, cheap"' in lines, "labels that hold commas are quoted"
    np.testing.assert_allclose([float(row[2]) for row in rows[1:]], loaded.predict_proba(TEXTS).max(axis=1), 1e-5)
    shown = run("predict", model, tmp_path / "mail.csv", "--out", tmp_path / "classes.csv").stdout
    assert "8 predictions written to" in shown
    assert (tmp_path / "classes.csv").read_text() == lines
    values = as_json("evaluate", model, tmp_path / "mail.csv", "--label-column", "folder")
    assert values["n"] == 8
    assert values["accuracy"] == np.mean(loaded.predict(TEXTS) == np.array(LABELS))
    assert values == as_json("evaluate", model, tmp_path / "mail.zarr")
    lines = tmp_path / "lines.txt"
    lines.write_text("good day\n")
    assert "name the column" in run("evaluate", model, lines, code=3).stderr


@told
def test_rows_keep_their_numbers_where_documents_were_left_out(tmp_path: Path, model: Path) -> None:
    texts = [TEXTS[1], None, TEXTS[0], None]
    files = [write_jsonl(tmp_path / f"new-{i}.jsonl", [{"body": text} for text in texts]) for i in range(2)]
    options = ["--text-column", "body", "--on-error", "skip"]
    result = run("predict", model, *files, *options)
    assert [line.partition(",")[0] for line in result.stdout.splitlines()[1:]] == ["0", "2", "4", "6"]
    assert f"4 documents were left out; the first: {files[0]}, line 2" in result.stderr
    values = as_json("predict", model, *files, *options)
    assert (values["rows"], values["left_out"]) == ([0, 2, 4, 6], 4)
    assert values["labels"] == ["spam, cheap", "ham"] * 2
    error = run("predict", model, *files, *options[:2], "--out", tmp_path / "classes.csv", code=3).stderr
    assert f"{files[0]}, line 2: " in error
    assert not (tmp_path / "classes.csv").exists()


@told
def test_evaluating_tells_what_was_left_out_and_refuses_labels_of_another_kind(tmp_path: Path, model: Path) -> None:
    rows = [{"text": text, "folder": label} for text, label in zip([*TEXTS, None], [*LABELS, "ham"], strict=True)]
    file = write_jsonl(tmp_path / "test.jsonl", rows)
    arguments = ["evaluate", model, file, "--label-column", "folder"]
    assert f"{file}, line 9" in run(*arguments, code=3).stderr
    assert (
        f"1 of 9 documents were left out: 1 without a text. The first: {file}, line 9"
        in run(*arguments, "--on-error", "skip").stderr
    )
    values = as_json(*arguments, "--on-error", "skip")
    assert (values["n"], values["left_out"]) == (8, 1)
    numbers = write_jsonl(tmp_path / "numbers.jsonl", [{"text": text, "folder": 1} for text in TEXTS])
    error = run("evaluate", model, numbers, "--label-column", "folder", code=3).stderr
    assert "labels such as 1 cannot be compared with the classes of the model, such as 'ham'" in error
    run("ingest", numbers, "--label-column", "folder", tmp_path / "numbers.zarr")
    assert "labels such as 1 cannot" in run("evaluate", model, tmp_path / "numbers.zarr", code=3).stderr


# What a store, and a model, say of themselves


def test_a_store_and_a_model_tell_how_they_read(tmp_path: Path) -> None:
    file = write_csv(tmp_path / "mail.csv")
    options = ["--ngrams", "1,2", "--stop-words", "english", "--strip-accents", "unicode", "--tfidf", "--min-df", 2]
    run("ingest", file, "--label-column", "folder", *options, tmp_path / "mail.zarr")
    run("fit", tmp_path / "mail.zarr", tmp_path / "spam.model", "-k", 3)
    store, model = as_json("info", tmp_path / "mail.zarr")["text"], as_json("info", tmp_path / "spam.model")["text"]
    kept = len(TfidfVectorizer(ngram_range=(1, 2), stop_words="english", min_df=2).fit(TEXTS).vocabulary_)
    assert store["settings"] == model["settings"]
    assert store["settings"]["ngrams"] == [1, 2]
    assert (store["terms"], store["documents"]) == (model["terms"], model["documents"]) == (kept, 8)
    assert (model["looks_up_terms"], model["tokenizer"]) == (True, None), "an l2 norm is over all of a document"
    assert store["report"]["terms"] == kept + store["report"]["too_rare"]
    for place in ("mail.zarr", "spam.model"):
        shown = run("info", tmp_path / place).stdout
        assert (
            "1- to 2-grams of words, lower case, accents stripped (unicode), 318 stop words; tf-idf, l2 norm" in shown
        )
    assert f"all {kept:,} terms" in shown


def test_a_model_says_which_tokenizer_it_needs(tmp_path: Path) -> None:
    dataset = nfs.ingest(TEXTS, tmp_path / "mail.zarr", labels=LABELS, tokenizer=str.split)
    nfs.SparseMultinomialNB(3).fit(dataset).save(tmp_path / "spam.model")
    assert as_json("info", tmp_path / "spam.model")["text"]["tokenizer"] == "builtins:str.split"
    assert "tokenizer builtins:str.split" in run("info", tmp_path / "mail.zarr").stdout
    assert "needs        the tokenizer builtins:str.split" in run("info", tmp_path / "spam.model").stdout
    (tmp_path / "new.txt").write_text("cheap\n")
    error = run("predict", tmp_path / "spam.model", tmp_path / "new.txt", code=3).stderr
    assert "builtins:str.split" in error and "load_model" in error


def test_models_of_matrices_read_no_text(tmp_path: Path) -> None:
    X = sp.csr_array(np.array([[3, 0, 1], [0, 3, 1]] * 4))
    nfs.SparseMultinomialNB(2).fit(X, [0, 1] * 4).save(tmp_path / "model")
    assert as_json("info", tmp_path / "model")["text"] is None
    assert "matrices of 3 features, no raw text" in run("info", tmp_path / "model").stdout
    assert "fitted to a matrix" in run("predict", tmp_path / "model", write_csv(tmp_path / "mail.csv"), code=3).stderr
    sp.save_npz(tmp_path / "X.npz", X)
    assert "--on-error" in run("predict", tmp_path / "model", tmp_path / "X.npz", "--on-error", "skip", code=2).stderr
