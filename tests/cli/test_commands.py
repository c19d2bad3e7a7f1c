"""The command line: what it prints where, and which exit code it ends with."""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import subprocess
import sys
import time

import click
import numpy as np
import psutil
import pytest
import scipy.sparse as sp
from click.testing import CliRunner

from nfs_dask import SparseMultinomialNB, __version__, ingest, load_model, open_dataset
from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.cli.main import cli
from nfs_dask.cluster.finding import connect

COMMANDS = ("demo", "ingest", "info", "plan", "path", "fit", "status", "predict", "evaluate", "doctor")
ESCAPE = "\x1b["


def run(*arguments):
    """The command in this process; bugs come out as they are."""
    result = CliRunner().invoke(cli, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def run_json(*arguments, exit_code=0):
    result = run(*arguments, "--json")
    assert result.exit_code == exit_code, result.stderr
    assert result.stdout.count("\n") == 1, "one object, on one line"
    return json.loads(result.stdout)


def start(*arguments, **options):
    """The command in a process of its own."""
    # A process started in the background may have been told to ignore interruptions.
    code = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from nfs_dask.cli.main import cli
cli(prog_name="nfs-dask")
"""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


@pytest.fixture(scope="module")
def matrix():
    return sp.random_array((60, 12), density=0.3, format="csr", rng=np.random.default_rng(0), dtype=np.uint8)


@pytest.fixture(scope="module")
def labels():
    return np.array(["ham", "spam", "[red]odd[/red]\x1b[31m"])[np.arange(60) % 3]


@pytest.fixture(scope="module")
def store(tmp_path_factory, matrix, labels):
    path = tmp_path_factory.mktemp("cli") / "mail.zarr"
    ingest(matrix, path, labels=labels, names=[f"word{i}" for i in range(12)])
    return path


# The frame: help, versions, wrong usage.


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_to_copy(command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"\n  nfs-dask {command}" in result.stdout


def test_help_lists_the_commands_and_the_exit_codes():
    text = run("--help").stdout
    assert all(command in text for command in COMMANDS)
    assert "130 interrupted" in text and "143 ended by SIGTERM" in text


def test_version():
    assert run("--version").stdout == f"nfs-dask {__version__}\n"


def test_help_comes_at_once():
    def seconds():
        """Of the processor, so that it matters little what else the machine does."""
        before = os.times()
        start("--help").communicate()
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    assert min(seconds() for _ in range(5)) < 0.5


@pytest.mark.parametrize(
    "wrong",
    [
        ["no-such-command"],
        ["info"],
        ["info", "a.zarr", "--no-such-option"],
        ["plan", "a.zarr", "--memory-limit", "plenty"],
        ["plan", "a.zarr", "--workers", "0"],
        ["plan", "a.zarr", "--method", "magic"],
        ["plan", "a.zarr", "--tls-ca", __file__],
        ["plan", "a.zarr", "--scheduler", "tls://10.0.0.1:1", "--tls-ca", __file__],
        ["plan", "a.zarr", "--scheduler", "tcp://10.0.0.1:1"],
        ["plan", "a.zarr", "--scheduler", "tcp://127.0.0.1:1", "--threads", "2"],
        ["plan", "a.zarr", "--insecure"],
        ["demo", "--scheduler", "tcp://127.0.0.1:1"],
        ["doctor", "--host", "localhost"],
        ["ingest", "a.npz", "b.zarr", "--labels", "y.npy", "--label-column", "y"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_2(wrong):
    result = run(*wrong)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("Usage: ")


def test_a_scheduler_elsewhere_must_be_encrypted_or_allowed():
    assert "--insecure" in run("doctor", "--scheduler", "tcp://10.0.0.1:1").stderr


# Errors, in one place.


def test_what_is_not_there_is_3(tmp_path):
    result = run("info", tmp_path / "nowhere.zarr")
    assert result.exit_code == 3
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert "nowhere.zarr" in result.stderr
    assert "Traceback" not in result.stderr


def test_errors_are_objects_for_programs(tmp_path):
    values = run_json("info", tmp_path / "nowhere.zarr", exit_code=3)
    assert values["exit_code"] == 3
    assert values["kind"] == "StoreError"
    assert "nowhere.zarr" in values["error"]


def test_a_file_that_cannot_be_opened_is_3(tmp_path, matrix):
    sp.save_npz(tmp_path / "x.npz", matrix)
    result = run("ingest", tmp_path / "x.npz", "--labels", tmp_path / "nowhere.npy", tmp_path / "x.zarr")
    assert result.exit_code == 3
    assert "nowhere.npy: No such file" in result.stderr


def test_a_place_that_does_not_answer_is_3():
    result = run("info", "http://127.0.0.1:9/x.zarr")
    assert result.exit_code == 3
    assert result.stderr.startswith("Error: http://127.0.0.1:9/x.zarr: Cannot connect")


def test_a_full_disk_is_3_and_leaves_nothing(tmp_path, matrix, full_disk):
    sp.save_npz(tmp_path / "x.npz", matrix)
    with full_disk(500):
        result = run("ingest", tmp_path / "x.npz", tmp_path / "x.zarr")
    assert result.exit_code == 3
    assert (
        str(tmp_path) in result.stderr
        and "Error: File too large: '" in result.stderr
        and result.stderr.endswith("; make room there, and try again\n")
    )
    assert os.listdir(tmp_path) == ["x.npz"]


def test_a_closed_standard_output_is_no_bug(store, monkeypatch):
    monkeypatch.setattr("sys.stdout", None)
    with pytest.raises(SystemExit) as ended:
        cli(["info", str(store)])
    assert ended.value.code == 0


def test_a_bug_ends_in_a_traceback(monkeypatch, store):
    monkeypatch.setattr("nfs_dask.dataset.open_dataset", lambda *a, **k: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        run("info", store)


def test_no_scheduler_is_4(monkeypatch):
    monkeypatch.setattr("nfs_dask.cluster.finding.connect", functools.partial(connect, seconds=0.5))
    result = run("doctor", "--scheduler", "tcp://127.0.0.1:9")
    assert result.exit_code == 4
    assert "tcp://127.0.0.1:9 cannot be reached" in result.stderr


def interrupted(process):
    """What a process says when it is interrupted, once it has said that it works."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=90)
    assert process.returncode == 130, err
    assert out == ""
    assert "Traceback" not in err
    return err


def test_an_interrupted_demo_leaves_nothing(tmp_path):
    process = start("demo", "--documents", "9000000", env=os.environ | {"TMPDIR": str(tmp_path)})
    assert "generating" in process.stderr.readline()
    time.sleep(0.5)
    assert "Error: interrupted; the temporary folder was deleted" in interrupted(process)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("nfs-dask")]


def test_an_interrupted_ingest_leaves_no_store(tmp_path):
    rows = tmp_path / "many.svmlight"
    rows.write_bytes(b"1 1:1 2:3 5:8\n0 1:3 2:1 4:7\n" * 500_000)
    process = start("ingest", str(rows), str(tmp_path / "x.zarr"))
    wait_for(lambda: len(os.listdir(tmp_path)) > 1)
    assert f"Error: interrupted; {tmp_path / 'x.zarr'} is as it was before" in interrupted(process)
    assert os.listdir(tmp_path) == ["many.svmlight"]


@pytest.mark.parametrize("working", [pytest.param(False, marks=pytest.mark.slow), True])
def test_ctrl_c_in_a_terminal_goes_to_the_workers_too(tmp_path, working):
    arguments = ("demo", "--documents", "3000000", "--workers", "2", "--keep", str(tmp_path / "kept"))
    process = start(*arguments, start_new_session=True)
    if working:
        assert "generating" in process.stderr.readline()  # the workers are there
    else:
        wait_for(psutil.Process(process.pid).children)  # they are being started
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=90)
    assert (process.returncode, out) == (130, "")
    assert "Error: interrupted" in err and "Traceback" not in err
    assert not list(tmp_path.glob("kept/.*"))


def wait_for(there):
    deadline = time.monotonic() + 60
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# The commands.


def test_demo_finds_the_planted_words():
    values = run_json("demo", "--documents", 3000, "--features", 800)
    planted = {word for words in values["planted"] for word in words}
    assert {row["word"] for row in values["words"]} == planted
    assert values["store"] is None
    truth = GeneratedCorpus(3000, 800)
    blocks = list(truth.blocks(0, truth.n_blocks))
    counts = np.zeros((2, 800), np.int64)
    for block in blocks:
        np.add.at(counts, (np.repeat(block.codes, np.diff(block.indptr)), block.indices), block.data)
    columns = dict(zip(truth.names(np.arange(800)), range(800), strict=True))
    for row in values["words"]:
        assert row["counts"] == counts[:, columns[row["word"]]].tolist()
        speaks_for = int(np.argmax(row["counts"]))
        assert row["speaks_for"] == values["classes"][speaks_for]
        assert row["word"] in values["planted"][speaks_for]
    assert values["entries"] == sum(block.nnz for block in blocks)
    weights = [row["weight"] for row in values["words"]]
    assert weights == sorted(weights, reverse=True)


def test_demo_fits_certifies_and_predicts():
    values = run_json("demo", "--documents", 3000, "--features", 800, "--words", 12)
    train, test = GeneratedCorpus(3000, 800), GeneratedCorpus(750, 800, first_block=1)
    fitted, others = (block_of(corpus) for corpus in (train, test))
    model = SparseMultinomialNB(12).fit(*fitted)
    assert {row["word"] for row in values["words"]} == set(train.names(model.get_support(indices=True)))
    assert (values["objective"], values["gap"]) == (model.objective_, model.dual_gap_)
    assert values["upper_bound"] == model.upper_bound_
    assert values["certified"] is model.certified_
    assert values["held_out"] == 750
    assert values["accuracy"] == model.score(*others)
    assert values["interval"][0] < values["accuracy"] < values["interval"][1]
    assert values["accuracy"] > 0.8, "chance is a half"
    assert set(values["seconds"]) == {"write", "fit", "evaluate"}


def block_of(corpus):
    """The documents and labels of a corpus of one block."""
    (block,) = corpus.blocks(0, corpus.n_blocks)
    X = sp.csr_array((block.data, block.indices, block.indptr), shape=(block.n_rows, block.n_features))
    return X, corpus.classes[block.codes]


def test_demo_for_people_shows_a_table_without_colours_in_a_pipe():
    result = run("demo", "--documents", 2000, "--features", 500, "--words", 5)
    assert result.exit_code == 0
    assert "planted in" in result.stdout
    assert "5 of these 5 words are among the 20 planted ones" in result.stdout
    assert re.search("Certificate: log likelihood -[0-9,.]+, and no other choice of 5 words is better", result.stdout)
    assert re.search(r"Accuracy on 500 documents that were not fitted: 0\.\d+ \(95 % between", result.stdout)
    assert ESCAPE not in result.stdout + result.stderr
    assert "generating" in result.stderr


def test_demo_keeps_its_dataset_where_told(tmp_path):
    values = run_json("demo", "--documents", 500, "--features", 300, "--keep", tmp_path / "kept")
    assert open_dataset(values["store"]).n_rows == 500
    assert len(load_model(values["model"]).get_support(indices=True)) == 20
    again = run("demo", "--documents", 500, "--keep", tmp_path / "kept")
    assert again.exit_code == 3, "nothing is replaced"


def test_demo_on_processes():
    size = ("--documents", 2000, "--features", 500)
    values = run_json("demo", *size, "--workers", 1, "--threads", 2, "--memory-limit", "1GiB")
    here = run_json("demo", *size)
    for name in ("words", "objective", "gap", "accuracy"):
        assert values[name] == here[name]


def test_info_tells_what_is_in_a_store(store, matrix, labels):
    values = run_json("info", store)
    assert (values["rows"], values["features"], values["entries"]) == (60, 12, matrix.nnz)
    assert values["classes"] == sorted(set(labels))
    assert values["class_rows"] == [20, 20, 20]
    assert values["kind"] == "count"
    assert values["generation"] is not None
    assert values["names"] is True
    assert values["nbytes"] == sum(p.stat().st_size for p in store.rglob("*") if p.is_file())
    assert values["fingerprint"] == open_dataset(store).fingerprint


def test_info_is_harmless_on_a_terminal_whatever_the_labels(store):
    result = run("info", store)
    assert result.exit_code == 0
    assert ESCAPE not in result.stdout
    assert "[red]odd[/red]\\x1b[31m" in result.stdout
    assert "60" in result.stdout


def test_info_verifies(store):
    assert run_json("info", store, "--verify")["verified"] is True
    assert "all agree" in run("info", store, "--verify").stdout


def test_a_store_without_any_label_is_3(tmp_path, matrix):
    ingest(matrix, tmp_path / "x.zarr", labels=[None] * matrix.shape[0])
    result = run("plan", tmp_path / "x.zarr")
    assert result.exit_code == 3
    assert "no document of" in result.stderr and "has a label; give" in result.stderr


def test_a_plan_that_does_not_fit_is_4(tmp_path):
    ingest(GeneratedCorpus(30_000, 200_000, words_per_document=120, block_rows=30_000), tmp_path / "large.zarr")
    result = run("plan", tmp_path / "large.zarr", "--workers", 1, "--memory-limit", "256MiB", "--json")
    assert result.exit_code == 4
    assert json.loads(result.stdout)["fits"] is False
    assert "Give each worker" in result.stderr


def test_ingest_of_npz_with_labels(tmp_path, matrix, labels):
    sp.save_npz(tmp_path / "x.npz", matrix)
    np.save(tmp_path / "y.npy", labels)
    (tmp_path / "names.txt").write_text("".join(f"wörd{i}\n" for i in range(12)), encoding="utf-8")
    given = ["--labels", tmp_path / "y.npy", "--names", tmp_path / "names.txt"]
    values = run_json("ingest", tmp_path / "x.npz", tmp_path / "x.zarr", *given)
    assert (values["rows"], values["features"], values["entries"]) == (60, 12, matrix.nnz)
    dataset = open_dataset(tmp_path / "x.zarr")
    assert dataset.names(np.arange(12)) == [f"wörd{i}" for i in range(12)]
    counts = dataset.reduce(dataset.class_counts()).state.arrays["sums"]
    truth = np.stack([matrix[labels == c].sum(axis=0) for c in sorted(set(labels))])
    assert np.array_equal(counts, truth)


@pytest.mark.parametrize(
    ("text", "classes"), [("2\n10\n" * 30, [2, 10]), ("b\n1\n" * 30, ["1", "b"])], ids=["integers", "texts"]
)
def test_labels_from_lines_are_numbers_where_all_are(tmp_path, matrix, text, classes):
    sp.save_npz(tmp_path / "x.npz", matrix)
    (tmp_path / "y.txt").write_text(text)
    assert (
        run_json("ingest", tmp_path / "x.npz", tmp_path / "x.zarr", "--labels", tmp_path / "y.txt")["classes"]
        == classes
    )


def test_labels_are_never_unpickled(tmp_path, matrix):
    sp.save_npz(tmp_path / "x.npz", matrix)
    np.save(tmp_path / "y.npy", np.array([{"a": 1}] * 60, dtype=object), allow_pickle=True)
    result = run("ingest", tmp_path / "x.npz", tmp_path / "x.zarr", "--labels", tmp_path / "y.npy")
    assert result.exit_code == 3
    assert "astype(str)" in result.stderr
    assert not (tmp_path / "x.zarr").exists()


def test_ingest_replaces_nothing(store, tmp_path, matrix):
    sp.save_npz(tmp_path / "x.npz", matrix)
    result = run("ingest", tmp_path / "x.npz", store)
    assert result.exit_code == 3
    assert str(store) in result.stderr


@pytest.fixture
def scheduler(shared_workers):
    return shared_workers.whole().scheduler_address


def test_doctor_of_this_machine():
    values = run_json("doctor")
    assert values["healthy"] is True
    assert values["nodes"][0]["versions"]["numpy"] == np.__version__
    assert "nothing stands in the way" in run("doctor").stdout


def test_doctor_of_a_cluster(scheduler, store):
    values = run_json("doctor", "--scheduler", scheduler, "--store", store)
    assert [node["role"] for node in values["nodes"]] == ["client", "scheduler", "worker", "worker"]
    text = run("doctor", "--scheduler", scheduler).stdout
    assert "2.0 GiB" in text
    assert "workers" in text


def test_doctor_says_4_when_something_stands_in_the_way(scheduler, tmp_path):
    result = run("doctor", "--scheduler", scheduler, "--store", tmp_path / "nowhere")
    assert result.exit_code == 4
    assert "PROBLEM" in result.stdout
    assert "is not reached by" in result.stderr
    values = run_json("doctor", "--scheduler", scheduler, "--store", tmp_path / "nowhere", exit_code=4)
    assert values["healthy"] is False


def test_a_pass_refuses_a_cluster_of_other_versions(scheduler, store, monkeypatch):
    problem = "numba is 1 here, 2 there"
    monkeypatch.setattr("nfs_dask.cluster.examine.judge_versions", lambda report: report.problems.append(problem))
    result = run("plan", store, "--scheduler", scheduler)
    assert result.exit_code == 4
    assert problem in result.stderr


def test_commands_run_on_a_cluster_that_is_there(scheduler, store, tmp_path):
    plan = run_json("plan", store, "--scheduler", scheduler)
    assert plan["resources"]["memory_limit"] == 2**31
    values = run_json(
        "demo", "--scheduler", scheduler, "--documents", 1000, "--features", 400, "--keep", tmp_path / "d"
    )
    assert values["documents"] == 1000


def test_certificates_from_the_command_line(tmp_path):
    values = run_json("doctor", "--make-certificates", tmp_path / "certs", "--host", "10.1.2.3")
    assert sorted(os.listdir(tmp_path / "certs")) == sorted(os.path.basename(file) for file in values["files"])
    again = run("doctor", "--make-certificates", tmp_path / "certs")
    assert again.exit_code == 3


def test_the_same_commands_as_dask_nfs(store):
    command = [sys.executable, "-m", "dask", "nfs", "info", str(store), "--json"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["rows"] == 60
    missing = subprocess.run([*command[:5], "/nowhere.zarr"], capture_output=True, text=True, check=False)
    assert missing.returncode == 3
    assert re.match("Error: .*nowhere", missing.stderr.splitlines()[-1])


def test_every_command_has_json_and_every_one_that_runs_passes_the_cluster():
    for name in COMMANDS:
        options = {option for parameter in cli.commands[name].params for option in parameter.opts}
        assert "--json" in options
        if name not in ("info", "status"):
            assert {"--scheduler", "--workers", "--threads", "--memory-limit", "--tls-ca", "--insecure"} <= options
    assert isinstance(cli, click.Group)
