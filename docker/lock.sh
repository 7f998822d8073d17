#!/bin/sh
# Rewrite docker/requirements.txt and docker/object-store.txt: the packages of the images at the versions of
# constraints.txt, with the hashes of their files. Needs pip-tools. torch is apart, in torch-cpu.txt: it comes
# from another index.
set -eu
cd "$(dirname "$0")/.."

lock() {
    pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-annotate --no-header \
        --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
        --constraint constraints.txt --output-file - "$1" |
        awk '/^[^ #]/ { is_torch = /^torch==/ } !is_torch && !/^ *#/ && !/^$/'
}

locked=docker/requirements.txt
{
    echo "# Written by docker/lock.sh: the packages of the images, apart from torch, with their hashes."
    lock pyproject.toml
} > "$locked.new"
mv "$locked.new" "$locked"

beside=docker/object-store.txt
wanted=$(mktemp)
echo s3fs > "$wanted"
{
    echo "# Written by docker/lock.sh: the packages beside those, for a store of bundles in an object store."
    lock "$wanted" | awk -v locked="$locked" '
        BEGIN { while ((getline line < locked) > 0) if (split(line, name, "==") > 1) known[name[1]] = 1 }
        /^[^ ]/ { split($0, name, "=="); is_known = name[1] in known }
        !is_known'
} > "$beside.new"
rm "$wanted"
mv "$beside.new" "$beside"
