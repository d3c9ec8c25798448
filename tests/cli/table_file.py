"""A table calibration with every term, a tile edge, captured graphs and the cliff above them."""

import json

ROWS = [1, 16, 64, 128, 136, 256, 512]
DENSE_MS = [6.0, 6.05, 6.1, 6.2, 9.0, 10.0, 18.0]
CAPTURED = [1, 8, 64, 128, 256]


def table_data(**costs):
    """The file as data, with other costs: None leaves one out."""
    every = {
        "form": "table",
        "dense": {
            "full": {"rows": ROWS, "ms": DENSE_MS},
            "eager": {"rows": ROWS, "ms": [ms + 9 for ms in DENSE_MS]},
        },
        "head": {"rows": [1, 512], "ms": [0.2, 0.8]},
        "decode_attention": {
            "batch": [1, 64],
            "query": [1, 4],
            "context": [16, 4096],
            "ms": [[[0.1, 0.2], [0.1, 0.3]], [[0.2, 4.0], [0.2, 4.4]]],
        },
        "sampling": {"batch": [1, 64], "query": [1, 4], "ms": [[0.1, 0.1], [0.2, 0.3]]},
        "kv_update": {"rows": [1, 256], "ms": [0.01, 0.02]},
        "draft": {
            "kind": "chain",
            "first": {"rows": [1, 256], "ms": [1.0, 1.2]},
            "narrow": {"batch": [1, 64], "context": [16, 4096], "ms": [[0.9, 1.0], [1.0, 1.4]]},
        },
        "host": {"rows": [1, 64], "ms": [0.5, 1.0]},
        "graphs": {"capture_sizes": CAPTURED},
        "roofline": {"weight_bytes": 16e9, "flops_per_row": 16e9, "bandwidth_gb_per_s": 3350, "tflop_per_s": 989},
        "whole_steps": [
            {"batch": 1, "query": 1, "context": 16, "ms": 6.41},
            {"batch": 16, "query": 1, "context": 16, "ms": 6.4},
            {"batch": 64, "query": 4, "context": 16, "ms": 10.0},
        ],
    } | costs
    return {
        "schema": "specsim-calibration/1",
        "name": "own",
        "kind": "measured",
        "provenance": {"source": "a test", "date": "2026-11", "licence": "none", "measured": ["all"]},
        "hardware": {"gpu": "NVIDIA H100 80GB"},
        "models": {"target": "8B", "draft": "1B"},
        "costs": {name: value for name, value in every.items() if value is not None},
        "async_scheduling": False,
        "heldout": {"median_percent": 1.5},
    }


def write_table(path, **costs):
    """Write it, and give the path as text."""
    path.write_text(json.dumps(table_data(**costs)))
    return str(path)
