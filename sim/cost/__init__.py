"""From calibrations to the milliseconds of a step and the KV blocks that fit."""
