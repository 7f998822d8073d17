#!/bin/sh
# Rewrite docker/requirements.txt: the packages of the images at the versions of constraints.txt, with the
# hashes of their files. Needs pip-tools. torch is apart, in torch-cpu.txt: it comes from another index.
set -eu
cd "$(dirname "$0")/.."
locked=docker/requirements.txt
{
    echo "# Written by docker/lock.sh: the packages of the images, apart from torch, with their hashes."
    pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-annotate --no-header \
        --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
        --constraint constraints.txt --output-file - pyproject.toml |
        awk '/^[^ #]/ { is_torch = /^torch==/ } !is_torch && !/^ *#/ && !/^$/'
} > "$locked.new"
mv "$locked.new" "$locked"
