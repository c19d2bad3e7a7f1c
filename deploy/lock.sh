#!/bin/sh
# Write deploy/constraints.txt anew: the newest versions that go together, for all Pythons that the image may have.
#
#     deploy/lock.sh        (with uv, which the extra `dev` brings)
set -eu
cd "$(dirname "$0")/.."
uv pip compile pyproject.toml deploy/constraints.in --extra s3 --extra anndata --extra metrics --extra gateway --universal \
  --python-version 3.11 --no-annotate --quiet --upgrade --custom-compile-command deploy/lock.sh \
  --output-file deploy/constraints.txt
