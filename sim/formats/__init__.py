"""Readers of other tools' files: traces and lists of lengths."""
