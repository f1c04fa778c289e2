"""Treewright: a microservice that trains, audits and serves decision trees."""
