"""The history of the tables: Alembic runs it whenever a store is opened (`service.store.database`)."""
