"""The result document as a sentence, tables, JSON text and files."""
