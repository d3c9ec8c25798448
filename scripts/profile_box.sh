#!/usr/bin/env bash
# Profile a bare GPU machine: needs bash, Python 3.11 or later with torch and numpy, and this checkout. Interrupted, it goes on.
# Usage: scripts/profile_box.sh FOLDER [further options of python -m profiler.box]
set -euo pipefail

folder=$(realpath -m "${1:?a folder for the results}")
shift
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${PYTHON:-python3}
for draft in llama-3.2-1b eagle; do
    "$python" -m profiler.box --target llama-3.1-8b --draft "$draft" --out "$folder/llama-3.1-8b-$draft" "$@"
done
