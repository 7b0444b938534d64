"""Which models there are, where they come from, what they may be used for; and the way to a verified file."""

from watcher.catalog.find import HOW_TO_PULL, STARTER, Model, Verdict, digest, find, place, verify
from watcher.catalog.prepared import Recipe, prepared, prepared_path, prepared_record
from watcher.catalog.pull import pull
from watcher.catalog.spec import Spec, by_name, embedded_dir, manifest

__all__ = [
    "HOW_TO_PULL",
    "STARTER",
    "Model",
    "Recipe",
    "Spec",
    "Verdict",
    "by_name",
    "digest",
    "embedded_dir",
    "find",
    "manifest",
    "place",
    "prepared",
    "prepared_path",
    "prepared_record",
    "pull",
    "verify",
]
