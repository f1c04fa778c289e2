"""Treewright: a microservice that trains, audits and serves decision trees."""

__version__ = "0.1.0"
