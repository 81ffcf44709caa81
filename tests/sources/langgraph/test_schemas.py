# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""The JSON Schemas of graphs: input, context and configurable fields, from every kind of Python type."""

from typing import Any

import jsonschema_rs
import pytest
from langchain.agents import create_agent
from langgraph.graph import START, StateGraph
from pydantic import BaseModel

from limelight.sources.base import Options
from limelight.sources.input_schemas import InputSchemas
from limelight.sources.langgraph.source import LangGraphSource
from tests.sources.langgraph import graphs, input_graphs
from tests.sources.langgraph.langgraph_scenarios import add, model
from tests.sources.live_turn import ModelEndpoint


def schemas_of(target: Any, **options: Any) -> InputSchemas:
    return LangGraphSource(target, Options(**options)).schemas


def input_of(target: Any, **options: Any) -> Any:
    schema = schemas_of(target, **options).input
    assert schema is not None
    jsonschema_rs.meta.validate(dict(schema))
    return schema


def context_of(target: Any, **options: Any) -> Any:
    schema = schemas_of(target, **options).context
    assert schema is not None
    jsonschema_rs.meta.validate(dict(schema))
    return schema


def test_explicit_typed_dict_requires_its_keys() -> None:
    schema = input_of(input_graphs.typed_dict_input())
    assert list(schema["properties"]) == ["topic", "audience", "style"]
    assert schema["properties"]["topic"] == {"title": "Topic", "type": "string"}
    assert schema["properties"]["style"]["enum"] == ["short", "long"]
    assert schema["required"] == ["topic", "audience"]
    assert schema["additionalProperties"] is False
    schemas = schemas_of(input_graphs.typed_dict_input())
    assert (schemas.has_more_than_question, schemas.question_key) == (True, "topic")


def test_pydantic_state_has_constraints_descriptions_and_nested_models() -> None:
    schema = input_of(input_graphs.pydantic_input())
    assert schema["required"] == ["person", "days"]
    assert schema["properties"]["person"]["description"] == "Who travels"
    assert schema["properties"]["days"]["minimum"] == 1 and schema["properties"]["days"]["maximum"] == 30
    assert schema["properties"]["places"]["default"] == []
    assert schema["$defs"]["Person"]["properties"]["born"]["format"] == "date"


def test_dataclass_has_defaults_and_required_fields() -> None:
    schema = input_of(input_graphs.dataclass_input())
    assert list(schema["properties"]) == ["company", "questions", "notes"]
    assert schema["required"] == ["company"]
    assert "default" not in schema["properties"]["questions"], "a factory of the user is not called"
    assert schema["properties"]["notes"]["default"] is None


def test_state_without_an_input_schema_requires_nothing() -> None:
    schema = input_of(input_graphs.numbers())
    assert list(schema["properties"]) == ["numbers", "factor", "total"]
    assert schema["required"] == []
    assert schemas_of(input_graphs.numbers()).question_key == ""


def test_typed_dict_inside_of_a_value_requires_no_keys() -> None:
    schema = input_of(input_graphs.partial_values())
    assert list(schema["$defs"]["LogLine"]["properties"]) == ["id", "question", "grade"]
    assert jsonschema_rs.is_valid(schema, {"lines": [{"id": "1"}]})
    assert not jsonschema_rs.is_valid(schema, {"lines": [{"id": 1}]})


def test_messages_are_described_without_the_classes_of_langchain() -> None:
    schemas = schemas_of(input_graphs.messages_and_topic())
    assert schemas.input is not None
    assert list(schemas.input["properties"]) == ["messages", "topic"]
    assert schemas.input["properties"]["messages"] == {"title": "Messages", "type": "array"}
    assert "$defs" not in schemas.input
    assert (schemas.has_more_than_question, schemas.question_key) == (True, "messages")


@pytest.mark.parametrize("target", [graphs.greeting(None), graphs.shout, graphs.remembering])
def test_graph_that_takes_only_a_question_has_no_further_input(target: Any) -> None:
    assert not schemas_of(target).has_more_than_question


def test_langchain_agent_takes_only_a_question() -> None:
    agent = create_agent(model(ModelEndpoint("http://x", "k")), [add])
    assert not schemas_of(agent).has_more_than_question


@pytest.mark.parametrize(
    ("function", "names", "required"),
    [
        (input_graphs.typed_function, ["item", "count"], ["item", "count"]),
        (input_graphs.dataclass_function, ["text", "limit"], ["text"]),
    ],
)
def test_function_has_the_fields_of_its_parameter(function: Any, names: list[str], required: list[str]) -> None:
    schema = input_of(function)
    assert list(schema["properties"]) == names
    assert schema["required"] == required
    assert schemas_of(function).has_more_than_question


def test_function_that_takes_a_dict_takes_any_object() -> None:
    schemas = schemas_of(input_graphs.dict_function)
    assert (schemas.input, schemas.has_more_than_question) == ({"type": "object"}, True)
    assert schemas_of(input_graphs.text_function).input is None


def test_fields_without_a_json_form_do_not_hide_the_others() -> None:
    schema = input_of(input_graphs.odd_types())
    assert schema["properties"]["name"]["type"] == "string"
    assert schema["properties"]["handler"] == {"title": "Handler"}
    assert schema["properties"]["thing"] == {"title": "Thing"}


def test_reserved_keys_are_not_offered() -> None:
    schema = input_of(input_graphs.needs_user())
    assert list(schema["properties"]) == ["amount"] and schema["required"] == ["amount"]


def test_defaults_of_the_settings_are_shown_and_not_required() -> None:
    schema = input_of(input_graphs.typed_dict_input(), input={"audience": "children"})
    assert schema["required"] == ["topic"]
    assert schema["properties"]["audience"]["default"] == "children"


# Context


def test_context_of_a_dataclass() -> None:
    schema = context_of(input_graphs.with_dataclass_context())
    assert list(schema["properties"]) == ["tone", "language", "model"]
    assert schema["properties"]["language"]["enum"] == ["en", "de"]
    assert schema["properties"]["model"]["default"] == "small"
    assert schema["required"] == ["tone", "language"]


def test_context_values_of_the_settings_are_not_shown() -> None:
    schema = context_of(input_graphs.with_dataclass_context(), context={"tone": "secret", "language": "en"})
    assert schema["required"] == []
    assert "secret" not in str(schema)


def test_context_of_a_pydantic_model() -> None:
    schema = context_of(input_graphs.with_model_context())
    assert schema["required"] == ["tone"]
    assert schema["properties"]["temperature"]["maximum"] == 1


def test_context_of_a_typed_dict_requires_nothing() -> None:
    schema = context_of(input_graphs.with_typed_dict_context())
    assert list(schema["properties"]) == ["tone"] and schema["required"] == []


def test_old_config_schema_is_a_context() -> None:
    class Config(BaseModel):
        tone: str = "calm"

    assert context_of(input_graphs.with_old_config(Config))["properties"]["tone"]["default"] == "calm"


def test_graph_without_a_context_takes_any_value() -> None:
    assert context_of(input_graphs.with_old_config()) == {"type": "object"}


def test_configurable_fields_of_runnables_are_found() -> None:
    schemas = schemas_of(input_graphs.with_configurable_node())
    assert schemas.configurable is not None
    greeting = schemas.configurable["properties"]["greeting"]
    assert greeting["description"] == "How to greet" and greeting["default"] == "short"
    assert schemas.all_context == schemas.configurable


def test_deprecated_names_of_the_schemas_are_read() -> None:
    class Config(BaseModel):
        tone: str

    with pytest.warns(DeprecationWarning):
        builder = StateGraph(input_graphs.ReportState, input=input_graphs.ReportInput, config_schema=Config)  # pyright: ignore[reportCallIssue]
    builder.add_node("only", input_graphs.report)
    builder.add_edge(START, "only")
    assert context_of(builder)["required"] == ["tone"]
    assert input_of(builder)["required"] == ["topic", "audience"]
