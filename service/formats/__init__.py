"""Listings as NDJSON, CSV and Arrow."""
