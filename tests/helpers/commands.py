"""The command line as tests call it."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner, Result

from nfs_dask.cli.main import cli


def run(*arguments: Any, code: int = 0) -> Result:
    """Run a command, and look at its exit code."""
    result = CliRunner().invoke(cli, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result


def as_json(*arguments: Any, code: int = 0) -> dict[str, Any]:
    """What a command prints for programs."""
    values: dict[str, Any] = json.loads(run(*arguments, "--json", code=code).stdout)
    return values
