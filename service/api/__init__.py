"""HTTP in, HTTP out: a resource is a file; a view parses, calls one use case and answers."""
