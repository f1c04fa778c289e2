"""Background work that survives whatever happens to the processes that asked for it or run it."""
