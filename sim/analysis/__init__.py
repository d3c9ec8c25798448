"""Records in, numbers out: latencies, attribution, statistics, overload, cost. Nothing here runs an engine."""
