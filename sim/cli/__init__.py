"""The command `specsim`."""
