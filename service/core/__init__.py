"""The tree learner: numpy only, no web, no storage; modules stand in pipeline order (see docs/architecture.md)."""
