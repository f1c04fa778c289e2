"""Where the candidates of a listing come from, and which of them a query wants."""
