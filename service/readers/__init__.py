"""Bytes of a request become columns: one module per form of body, one that converts cells."""
