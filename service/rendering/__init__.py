"""Nodes, splits and candidates in the words of the API."""
