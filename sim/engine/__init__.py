"""The serving engine: scheduling rules, KV blocks, the clock, and what they leave on record."""
