"""How fast the service is, side by side with what a user would take instead: `make bench`, docs/benchmarks.md."""
