"""specsim's profiler: measures what the phases of a speculative step cost, on a GPU or on this CPU.

The measuring part needs torch, numpy and the standard library alone; `fit` and `check` also need specsim itself.
"""
