import { expect, it } from "vitest";
import type { AgentInfo } from "../client/api";
import type { JsonObject } from "../wire/events";
import { fieldsOfAgent, inputText, NO_FIELDS } from "./agentFields";

const schema: JsonObject = {
  type: "object",
  properties: { topic: { type: "string" }, words: { type: "integer" }, person: { type: "object" } },
  required: ["person", "topic"],
};

const agent = (part: Partial<AgentInfo>): AgentInfo => ({
  name: "a",
  title: "a",
  description: "",
  framework: "langgraph",
  default: true,
  ...part,
});

it("an agent without a schema has no fields", () => {
  expect(fieldsOfAgent(undefined)).toEqual(NO_FIELDS);
  expect(fieldsOfAgent(agent({}))).toEqual(NO_FIELDS);
});

it("the key of the question is not in the form", () => {
  const found = fieldsOfAgent(agent({ input_schema: schema, question_key: "topic" }));
  expect(found.takesQuestion).toBe(true);
  expect(found.input.map((field) => field.name)).not.toContain("topic");
  expect(fieldsOfAgent(agent({ input_schema: schema, question_key: "" })).takesQuestion).toBe(false);
});

it("required fields come first", () => {
  const found = fieldsOfAgent(agent({ input_schema: schema, question_key: "" }));
  expect(found.input.map((field) => field.name)).toEqual(["topic", "person", "words"]);
});

it("an input with any keys is one field", () => {
  const found = fieldsOfAgent(agent({ input_schema: { type: "object" }, question_key: "messages" }));
  expect(found).toMatchObject({ isOpenInput: true, takesQuestion: true });
  expect(found.input.map(({ name, jsonType }) => [name, jsonType])).toEqual([["input", "object"]]);
});

it("only context that requests may set is in the form", () => {
  const context: JsonObject = { type: "object", properties: { tone: { type: "string" }, key: { type: "string" } } };
  const names = (allowed: AgentInfo["context_from_request"]) =>
    fieldsOfAgent(agent({ context_schema: context, context_from_request: allowed ?? false })).context.map(
      (field) => field.name,
    );
  expect([names(false), names(true), names(["tone"])]).toEqual([[], ["tone", "key"], ["tone"]]);
});

it("values are described by a line for each key", () => {
  expect(inputText({ topic: "bees", words: 3, tags: ["a"], none: null })).toBe(
    'topic: bees\nwords: 3\ntags: ["a"]\nnone: null',
  );
});
