"""Checks JSON against the schemas of the documents, and refuses keys that a schema does not name."""

from typing import Any, cast

import jsonschema_rs


def strict(schema: Any) -> Any:
    """The same schema without room for unknown keys. Clients must ignore them; we must not send them."""
    if isinstance(schema, dict):
        found = {key: strict(value) for key, value in cast("dict[str, Any]", schema).items()}
        closed = {"additionalProperties": False} if "properties" in found else {}
        return {**found, **closed}
    return [strict(one) for one in cast("list[Any]", schema)] if isinstance(schema, list) else schema


class Checker:
    """One schema of a document, by its address in it."""

    def __init__(self, components: dict[str, Any], ref: str) -> None:
        self._validator = jsonschema_rs.validator_for({"$ref": ref, "components": components})

    def faults(self, value: Any) -> list[str]:
        """What is wrong with it, and where."""
        return [f"{list(error.instance_path)}: {error.message[:300]}" for error in self._validator.iter_errors(value)]
