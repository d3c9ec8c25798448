#!/usr/bin/env bash
# Measure the shipped CPU calibrations again, on a quiet machine. Interrupted, it goes on. Needs the extra `profile`.
# Usage: scripts/profile_cpu.sh FOLDER
set -euo pipefail

folder=$(realpath -m "${1:?a folder for the results}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${PYTHON:-.venv/bin/python}
for pair in "smollm2-135m eagle" "smollm2-360m smollm2-135m"; do
    read -r target draft <<< "$pair"
    results=$folder/$target-$draft
    "$python" -m sim profile run --device cpu --preset quick --target "$target" --draft "$draft" --out "$results"
    "$python" -m sim profile fit "$results" --out "calibrations/cpu-$target-$draft.json" --name "cpu-$target-$draft"
    "$python" -m sim profile check "$results" --calibration "$PWD/calibrations/cpu-$target-$draft.json"
done
