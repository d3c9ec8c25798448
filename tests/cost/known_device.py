"""A device whose costs are known functions: stairs of 64 rows, a cliff above the captured sizes, linear attention."""

from sim.inputs.calibration import TableCosts

TILE = 64
LIMIT = 256
BATCH = [1, 2, 4, 8, 16, 32, 64, 128]
QUERY = [1, 2, 3, 4, 5, 6, 8]
CONTEXT = [16, 128, 512, 2048, 8192]
CHUNK = [1, 64, 128, 256, 512, 1024, 2048, 4096]
START = [0, 1024, 4096, 16384]
ROWS = sorted({1, *(edge + side for edge in range(TILE, 1025, TILE) for side in (0, 1)), 2048, 4096})
SIZES = [1, 2, 4, *range(8, LIMIT + 1, 8)]


def dense_ms(rows, mode="full"):
    """A stair every 64 rows that is flat in between; piecewise adds launches, eager has a floor of 12 ms."""
    stairs = 5.0 + 0.9 * -(-rows // TILE)
    return {"full": stairs, "piecewise": stairs + 0.8, "eager": max(12.0, stairs + 2.0)}[mode]


def attention_ms(batch, query, context):
    return 0.02 + batch * (40e-6 * context + 2e-3 * query)


def prefill_attention_ms(chunk, start):
    """Causal: every token attends to all before it."""
    return 0.02 + 2e-7 * chunk * (start + chunk / 2)


def head_ms(rows):
    return 0.1 + 1e-3 * rows


def sampling_ms(batch, query):
    return 0.05 + 1e-4 * batch * query


def kv_update_ms(rows):
    return 0.002 * rows


def first_pass_ms(rows):
    return 0.6 + 2e-3 * rows


def narrow_pass_ms(batch, context):
    return 0.5 + batch * (1e-3 + 2e-6 * context)


def curve(function, rows=ROWS):
    return {"rows": rows, "ms": [function(row) for row in rows]}


def table_costs(**changes):
    """The tables that a profiler would have measured on that device."""
    content = {
        "form": "table",
        "dense": {mode: curve(lambda rows, mode=mode: dense_ms(rows, mode)) for mode in ("full", "piecewise", "eager")},
        "head": curve(head_ms),
        "decode_attention": {
            "batch": BATCH,
            "query": QUERY,
            "context": CONTEXT,
            "ms": [[[attention_ms(b, q, c) for c in CONTEXT] for q in QUERY] for b in BATCH],
        },
        "prefill_attention": {
            "chunk": CHUNK,
            "start": START,
            "ms": [[prefill_attention_ms(chunk, start) for start in START] for chunk in CHUNK],
        },
        "sampling": {"batch": BATCH, "query": QUERY, "ms": [[sampling_ms(b, q) for q in QUERY] for b in BATCH]},
        "kv_update": curve(kv_update_ms),
        "draft": {
            "kind": "chain",
            "first": curve(first_pass_ms),
            "narrow": {
                "batch": BATCH,
                "context": CONTEXT,
                "ms": [[narrow_pass_ms(b, c) for c in CONTEXT] for b in BATCH],
            },
        },
        "host": curve(lambda batch: 0.3 + 1e-3 * batch, BATCH),
        "graphs": {"capture_sizes": SIZES, "limit": LIMIT},
        "roofline": {
            "weight_bytes": 16e9,
            "flops_per_row": 16e9,
            "bandwidth_gb_per_s": 3350.0,
            "tflop_per_s": 700.0,
        },
    } | changes
    return TableCosts.model_validate(content)
