"""Where models are kept: records in a database, arrays in joblib files beside it."""

from service.store.models import ModelStore
from service.store.records import ModelDraft, ModelRecord, Retention

__all__ = ["ModelDraft", "ModelRecord", "ModelStore", "Retention"]
