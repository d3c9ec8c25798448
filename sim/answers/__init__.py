"""Questions that run the engine: the paired comparison of arms."""
