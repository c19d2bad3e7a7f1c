"""No secret is repeated: whatever commands and functions write is searched for those that were planted."""

from __future__ import annotations

import logging
import os
import pickle
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import fsspec
import pytest
from click.testing import CliRunner, Result
from fsspec.implementations.memory import MemoryFileSystem

import nfs_dask as nfs
from nfs_dask.cli.main import cli
from nfs_dask.cluster.tls import make_certificates
from tests.helpers.canaries import (
    ENVIRONMENT,
    PASSWORD,
    TOKEN,
    found_in,
    found_in_environment,
    found_in_memory,
    in_query,
    in_user,
)

ROWS = [f"{'win cash now' if i % 2 else 'notes agenda'} word{i % 7},{'spam' if i % 2 else 'ham'}" for i in range(60)]
MAIL = "\n".join(["text,label", *ROWS])
PLANTED = {"mail.csv": MAIL, "bad.csv": f"{MAIL}\nno label,", "taken": "neither a store nor a model"}
LABEL = ("--label-column", "label")

Place = Callable[[str], str]
Words = tuple[Any, ...]


def _file_of_labels() -> str:
    """A file of this machine with a label for each row of the documents."""
    file = Path(tempfile.gettempdir()) / f"labels-{os.getpid()}.txt"
    file.write_text("\n".join(row.rpartition(",")[2] for row in ROWS))
    return str(file)


def successes(place: Place) -> dict[str, list[Words]]:
    """What each command does with places that hold secrets, in an order in which each finds what it needs."""
    csv, store, model = place("mail.csv"), place("mail.zarr"), place("spam.model")
    return {
        "ingest": [
            (csv, store, *LABEL),
            (place("bad.csv"), csv, place("bad.zarr"), *LABEL, "--rejects", place("rejects.csv")),
            (csv, place("bare.zarr")),
        ],
        "label": [(place("bare.zarr"), _file_of_labels())],
        "info": [(store,), (store, "--verify"), (place("bad.zarr"),)],
        "plan": [(store, "--method", "multinomial")],
        "path": [(store, "--csv", place("path.csv"), "--no-cache")],
        "fit": [
            (store, model, "-k", 3, "--run", place("run"), "--no-cache", "--report", place("fit.html")),
            (store, model, "-k", 3, "--overwrite"),
            (store, place("l1.model"), "--method", "l1", "-k", 3),
        ],
        "status": [(place("run"),)],
        "stop": [(place("run"),)],
        "predict": [(model, csv), (model, csv, "--out", place("out.csv"))],
        "evaluate": [(model, csv, *LABEL)],
        "explain": [(model, "--file", csv, "--html", place("why.html"))],
        "report": [(model, place("report.html"), "--data", csv, *LABEL, "--path", store)],
        "features": [(model,), (model, "--out", in_user("features.csv"))],
        "sql": [(model,)],
        "onnx": [(model, "--out", place("mail.onnx"))],
        "sklearn": [(model, "--out", place("mail.joblib"))],
        "doctor": [("--store", store)],
        "demo": [("--documents", 200, "--features", 100, "--keep", place("demo"))],
    }


def failures(place: Place) -> dict[str, list[Words]]:
    """What each command cannot do."""
    nowhere, csv = place("nowhere"), place("mail.csv")
    taken, model = in_user("taken"), place("spam.model")
    return {
        "ingest": [
            (place("no.csv"), nowhere),
            (place("no.zip/inside"), nowhere),
            (place("mail.docx"), nowhere),
            (csv, nowhere, "--text-column", "none"),
            (csv, place("mail.zarr"), *LABEL),
            (taken, nowhere),
            (place("bad.csv"), nowhere, *LABEL),
        ],
        "label": [(nowhere, _file_of_labels()), (place("mail.zarr"), _file_of_labels())],
        "info": [(nowhere,), (taken,), (f"s3://me:{PASSWORD}@bucket/x",), (f"nonsense://me:{PASSWORD}@x/y",)],
        "plan": [
            (nowhere,),
            (nowhere, "--scheduler", f"tcp://me:{PASSWORD}@198.51.100.7:1"),
            (place("mail.zarr"), *("--method", "l2", "--kubernetes", "--model", place("m"), "--run", place("r"))),
        ],
        "path": [(nowhere,), (nowhere, "--scheduler", f"tls://me:{PASSWORD}@127.0.0.1:9")],
        "fit": [
            (nowhere, place("m")),
            (nowhere, model),
            (nowhere, place("m"), "--resume", nowhere),
            (place("mail.zarr"), place("m"), "--label-column", "none", "--run", place("run2")),
            (place("mail.zarr"), place("m"), "--scheduler", f"tcp://127.0.0.1:9?token={TOKEN}"),
            (place("mail.zarr"), place("m"), "--run", place("run3"), "--detach", "--on-cluster"),
        ],
        "status": [(nowhere,)],
        "stop": [(nowhere,)],
        "predict": [(nowhere, csv), (model, nowhere), (model, csv, "--text-column", "none")],
        "evaluate": [(nowhere, csv), (model, place("no.csv"))],
        "explain": [(nowhere, "words"), (model, "--file", nowhere)],
        "report": [(nowhere, place("x.html")), (model, place("report.html"))],
        "features": [(nowhere,), (model, "--out", in_user("features.csv"))],
        "sql": [(nowhere,)],
        "onnx": [(nowhere, "--out", place("mail.onnx")), (model, "--out", place("mail.csv"))],
        "sklearn": [(nowhere, "--out", place("mail.joblib")), (model, "--out", place("mail.csv"))],
        "doctor": [
            ("--store", nowhere),
            ("--scheduler", f"tls://127.0.0.1:9?token={TOKEN}"),
            ("--scheduler", f"tcp://127.0.0.1:9?token={TOKEN}", "--insecure"),
        ],
        "demo": [("--keep", f"nonsense://me:{PASSWORD}@x/y"), ("--documents", in_user("x"))],
    }


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Documents in memory, keys in the environment, and all of our logs."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]
    for name, content in {
        "mail.csv": MAIL,
        "bad.csv": f"{MAIL}\nno label,",
        "taken": "neither a store nor a model",
    }.items():
        for place in (in_user, in_query):
            with fsspec.open(place(name), "w") as file:
                file.write(content)
    caplog.set_level(logging.DEBUG, "nfs_dask")
    yield
    MemoryFileSystem.store.clear()


def shown(result: Result) -> str:
    """Everything that a person or a program gets to see."""
    raised = result.exception
    bug = None if raised is None or isinstance(raised, SystemExit) else "".join(traceback.format_exception(raised))
    return f"{result.stdout}\n{result.stderr}\n{bug or ''}"


def swept(commands: dict[str, list[Words]], options: Words = ()) -> tuple[dict[str, int], list[str]]:
    """Exit codes of all commands, and what they gave away."""
    codes: dict[str, int] = {}
    leaks: list[str] = []
    for name, calls in commands.items():
        for words in calls:
            result = CliRunner().invoke(cli, [name, *map(str, words), *options])
            codes[f"{name} {words}"] = result.exit_code
            leaks += [f"{name} {words}: {hit}" for hit in found_in(shown(result))]
    return codes, leaks


def test_no_command_is_forgotten() -> None:
    """Who adds a command says here what it does with places that hold secrets, and what it cannot do."""
    assert successes(in_user).keys() == failures(in_user).keys() == cli.commands.keys()


@pytest.mark.parametrize(
    ("place", "options"),
    [
        (in_user, ()),
        pytest.param(in_user, ("--json",), marks=pytest.mark.slow),
        pytest.param(in_query, (), marks=pytest.mark.slow),
        pytest.param(in_query, ("--json",), marks=pytest.mark.slow),
    ],
)
@pytest.mark.timeout(300)  # where nothing has been compiled before
@pytest.mark.filterwarnings("always::nfs_dask.errors.DataWarning")  # of the bad document
@pytest.mark.usefixtures("planted")
def test_no_command_gives_a_secret_away(place: Place, options: Words, caplog: pytest.LogCaptureFixture) -> None:
    codes, leaks = swept(successes(place), options)
    assert {name: code for name, code in codes.items() if code} == {}
    failed, more = swept(failures(place), options)
    assert {name: code for name, code in failed.items() if code not in (2, 3, 4)} == {}
    assert leaks + more == []
    assert found_in(caplog.text) == [] and caplog.text
    assert found_in_memory() == {}
    assert len(MemoryFileSystem.store) > 40, "stores, models, runs, pages and tables were searched"


def test_the_search_finds_what_is_there() -> None:
    import zlib

    import pyarrow as pa

    from nfs_dask.redaction import HIDDEN

    packed = pa.Codec("zstd").compress(f"me:{PASSWORD}".encode() * 50, asbytes=True)
    for content in (in_user("x"), in_query("x"), ENVIRONMENT["AWS_SESSION_TOKEN"], b"shard" + packed + b"end"):
        assert found_in(content)
    assert not found_in(HIDDEN) and not found_in(zlib.compress(b"nothing"))
    passed_on = dask.config.serialize({"place": in_query("x")})
    assert found_in_environment({**ENVIRONMENT, "PLACE": in_user("x"), "CONFIG": passed_on, "OTHER": "x"}).keys() == {
        "PLACE",
        "CONFIG",
    }
    assert found_in_environment({"OTHER_NAME": ENVIRONMENT["AWS_SESSION_TOKEN"]})


@pytest.mark.usefixtures("planted")
def test_data_that_look_like_secrets_stay_as_they_are() -> None:
    """Only what was typed is hidden in answers, which hold words of documents."""
    lines = "\n".join(f"https://ham.example/?q={i % 3} ftp://a:b@host,{'ham' if i % 2 else 'spam'}" for i in range(40))
    with fsspec.open(in_user("links.csv"), "w") as file:
        file.write("text,label\n" + lines)
    run = CliRunner().invoke
    pattern = ("--token-pattern", r"\S+", *LABEL)
    assert run(cli, ["ingest", in_user("links.csv"), in_user("links.zarr"), *pattern]).exit_code == 0
    assert run(cli, ["fit", in_user("links.zarr"), in_user("links.model"), "-k", "all"]).exit_code == 0
    for options in ([], ["--json"]):
        listed = run(cli, ["features", in_user("links.model"), *options]).stdout
        assert "https://ham.example/?q=1" in listed and "ftp://a:b@host" in listed


def test_a_bug_ends_in_a_traceback_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**_: Any) -> None:
        raise RuntimeError(f"no way to {in_user('x')} and {in_query('y')}")

    monkeypatch.setattr(cli.commands["info"], "callback", broken)
    result = CliRunner().invoke(cli, ["info", "x"])
    assert result.exit_code == 1
    assert "RuntimeError: no way to memory://***@disk/x and memory://disk/y?***" in result.stderr
    assert found_in(result.stderr) == []


def test_keys_that_are_given_for_certificates_are_not_shown(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    files = {name: str(tmp_path / f"{name}.pem") for name in ("ca", "client", "client-key")}
    lines = [line for line in Path(files["client-key"]).read_text().splitlines() if "-----" not in line]
    swapped = ("--tls-ca", files["ca"], "--tls-cert", files["client-key"], "--tls-key", files["client"])
    for options in ((), ("--json",)):
        words = ["doctor", "--scheduler", "tls://127.0.0.1:9", *swapped, *options]
        result = CliRunner().invoke(cli, words)
        assert result.exit_code == 3 and "cannot be used" in result.stderr
        assert lines and not [line for line in lines if line in shown(result)]


# From Python


def raised_by(act: Callable[[], Any]) -> str:
    """The whole of what Python shows of an error, but for the lines of code, which the caller has written."""
    with pytest.raises(Exception) as caught:  # noqa: PT011
        act()
    return "".join(
        line for line in traceback.format_exception(caught.value) if not line.lstrip().startswith("File ")
    ) + repr(caught.value)


@pytest.mark.usefixtures("planted")
def test_no_value_of_ours_shows_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    dataset = nfs.ingest(in_user("mail.csv"), in_user("mail.zarr"), label_column="label")
    serial = nfs.SerialEngine(run=in_user("run"), spool=in_query("spool"))
    model = nfs.SparseMultinomialNB(3, engine=serial).fit(dataset)
    model.save(in_user("spam.model"))
    loaded = nfs.load_model(in_user("spam.model"))
    cluster = nfs.DaskEngine(f"tls://me:{PASSWORD}@198.51.100.7:1", run=in_user("run"), spool=in_query("spool"))
    values = [dataset, nfs.open_dataset(in_user("mail.zarr")), serial, cluster, model, model.provenance_, loaded]
    values += [nfs.plan(dataset, model), nfs.path(dataset, "multinomial"), nfs.report(loaded)]
    values += [nfs.evaluate(loaded, in_user("mail.csv"), label_column="label")]
    for value in values:
        assert found_in(repr(value) + str(value) + str(getattr(value, "_repr_html_", str)())) == [], type(value)
    for fitted in (model.set_params(engine=None), loaded):
        assert found_in(pickle.dumps(fitted)) == [], "what was learnt has no places"
    assert found_in(caplog.text) == []
    assert found_in_memory() == {}


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize(
    "act",
    [
        lambda: nfs.open_dataset(in_user("none")),
        lambda: nfs.open_dataset(in_query("none")),
        lambda: nfs.open_dataset(f"s3://me:{PASSWORD}@bucket/x"),
        lambda: nfs.open_dataset(f"http://127.0.0.1:9/x?token={TOKEN}"),
        lambda: nfs.open_dataset(f"nonsense://me:{PASSWORD}@x"),
        lambda: nfs.ingest(f"http://me:{PASSWORD}@127.0.0.1:9/x.csv", in_user("y")),
        lambda: nfs.ingest(in_query("none.csv"), in_user("y")),
        lambda: nfs.ingest(in_query("none.csv.gz"), in_user("y")),
        lambda: nfs.ingest([in_query("mail.csv"), in_query("mail.jsonl")], in_user("y")),
        lambda: nfs.ingest(in_query("mail.csv"), in_user("y"), text_column="none"),
        lambda: nfs.ingest(in_query("none.zip/inside"), in_user("y")),
        lambda: nfs.open_dataset(in_query("none.npz")),
        lambda: nfs.open_dataset(f"http://127.0.0.1:9/x.npz?token={TOKEN}"),
        lambda: nfs.ingest(f"http://127.0.0.1:9/x.csv?X-Amz-Signature={TOKEN}", in_user("y")),
        lambda: nfs.load_model(in_query("none")),
        lambda: nfs.DaskEngine(f"tcp://127.0.0.1:9?token={TOKEN}").executor().__enter__(),
        lambda: nfs.DaskEngine(f"tcp://me:{PASSWORD}@127.0.0.1:9", insecure=True).executor().__enter__(),
        lambda: nfs.DaskEngine(f"tls://127.0.0.1:9?token={TOKEN}").executor().__enter__(),
    ],
)
def test_no_error_shows_a_secret(act: Callable[[], Any]) -> None:
    shown = raised_by(act)
    code = [line for line in shown.splitlines() if "lambda" in line or "act()" in line]
    assert found_in("\n".join(line for line in shown.splitlines() if line not in code)) == []
