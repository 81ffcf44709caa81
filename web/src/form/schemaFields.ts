/** Turns the JSON Schema of an object into the fields of a form, and what the user has typed into values. Pure. */

import type { AgentInfo } from "../client/api";
import type { JsonObject, JsonValue } from "../wire/events";

export type JsonSchema = { readonly [key: string]: JsonValue };

/** How a field is edited: a text, a number, yes or no, one of several values, or a value as JSON. */
export type FieldKind = "text" | "integer" | "number" | "boolean" | "choice" | "json";

export interface FormField {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly kind: FieldKind;
  readonly isRequired: boolean;
  /** The values of a choice. */
  readonly choices: readonly JsonValue[];
  /** The value that the agent uses if the field is empty; undefined if there is none, or null. */
  readonly defaultValue: JsonValue | undefined;
  readonly minimum: number | undefined;
  readonly maximum: number | undefined;
  /** The JSON type that a JSON field needs; "" if any will do. */
  readonly jsonType: "" | "array" | "object";
}

/** What the user has typed, by the name of the field. A choice is the index of its value. */
export type Draft = Readonly<Record<string, string>>;

/** What a request contains besides a question. */
export interface RunValues {
  readonly input?: JsonObject;
  readonly context?: JsonObject;
}

export interface AgentFields {
  /** Whether the agent can be asked in words. */
  readonly takesQuestion: boolean;
  readonly input: readonly FormField[];
  /** Whether the input is an object with keys that are not known. Then `input` is one field of the whole object. */
  readonly isOpenInput: boolean;
  readonly context: readonly FormField[];
}

export const NO_FIELDS: AgentFields = { takesQuestion: true, input: [], isOpenInput: false, context: [] };

const WHOLE_INPUT: FormField = {
  name: "input",
  title: "Input",
  description: "",
  kind: "json",
  isRequired: false,
  choices: [],
  defaultValue: undefined,
  minimum: undefined,
  maximum: undefined,
  jsonType: "object",
};

/** The fields of an agent: its input without the key of the question, and the context that a request may set. */
export function fieldsOfAgent(agent: AgentInfo | undefined): AgentFields {
  if (agent === undefined) return NO_FIELDS;
  const { input_schema: input, question_key: key = "", context_from_request: allowed = false } = agent;
  const isOpenInput = input !== undefined && input.properties === undefined;
  const context = [...fieldsOf(agent.configurable_schema), ...fieldsOf(agent.context_schema)];
  return {
    takesQuestion: input === undefined || key !== "",
    input: isOpenInput ? [WHOLE_INPUT] : fieldsOf(input).filter((field) => field.name !== key),
    isOpenInput,
    context: context.filter((field) => (typeof allowed === "boolean" ? allowed : allowed.includes(field.name))),
  };
}

/** The fields of an object schema, required ones first. */
export function fieldsOf(schema: JsonSchema | undefined): FormField[] {
  const required = listOf(schema?.required);
  const fields = Object.entries(objectOf(schema?.properties)).map(([name, field]) =>
    fieldOf(name, resolve(objectOf(field), schema ?? {}), required.includes(name)),
  );
  return [...fields.filter((field) => field.isRequired), ...fields.filter((field) => !field.isRequired)];
}

function fieldOf(name: string, schema: JsonSchema, isRequired: boolean): FormField {
  const parts = listOf(schema.anyOf ?? schema.oneOf).map((part) => objectOf(part));
  const others = parts.filter((part) => part.type !== "null");
  const inner = others.length === 1 ? { ...schema, ...others[0] } : schema;
  const choices = choicesOf(schema).filter((choice) => choice !== null);
  const type = Array.isArray(inner.type) ? inner.type.filter((one) => one !== "null")[0] : inner.type;
  const hasOneType = others.length <= 1 && !(Array.isArray(inner.type) && inner.type.length > 2);
  return {
    name,
    title: typeof schema.title === "string" && schema.title !== "" ? schema.title : name,
    description: typeof schema.description === "string" ? schema.description : "",
    kind: choices.length > 0 ? "choice" : hasOneType ? kindOf(type) : "json",
    isRequired,
    choices,
    defaultValue: schema.default ?? undefined,
    minimum: numberOf(inner.minimum),
    maximum: numberOf(inner.maximum),
    jsonType: hasOneType && (type === "array" || type === "object") ? type : "",
  };
}

function kindOf(type: JsonValue | undefined): FieldKind {
  switch (type) {
    case "string":
      return "text";
    case "integer":
    case "number":
    case "boolean":
      return type;
    default:
      return "json";
  }
}

/** The values of which a schema accepts one; empty if it accepts others. */
function choicesOf(schema: JsonSchema): readonly JsonValue[] {
  if (schema.const !== undefined) return [schema.const];
  const listed = listOf(schema.enum);
  if (listed.length > 0) return listed;
  const parts = listOf(schema.anyOf ?? schema.oneOf).map((part) => objectOf(part));
  const found = parts.map((part) => (part.type === "null" ? [null] : choicesOf(part)));
  return found.every((one) => one.length > 0) ? found.flat() : [];
}

const MAX_REFERENCES = 20;

/** A schema with its top-level reference, as `#/$defs/Name`, replaced by that part of the root schema. */
export function resolve(schema: JsonSchema, root: JsonSchema): JsonSchema {
  let current = schema;
  for (let count = 0; count < MAX_REFERENCES && typeof current.$ref === "string"; count += 1) {
    const { $ref, ...rest } = current;
    const parts = String($ref).replace(/^#\/?/, "").split("/").filter(Boolean);
    const target = parts.reduce<JsonSchema>(
      (part, name) => objectOf(part[name.replaceAll("~1", "/").replaceAll("~0", "~")]),
      root,
    );
    current = { ...target, ...rest };
  }
  return current;
}

export interface Collected {
  readonly values: JsonObject;
  /** What is wrong, by the name of the field. */
  readonly errors: Readonly<Record<string, string>>;
}

/** The values that the user has typed. Empty fields are left out, so that the agent uses its defaults. */
export function collect(fields: readonly FormField[], draft: Draft, isComplete: boolean): Collected {
  const values: Record<string, JsonValue> = {};
  const errors: Record<string, string> = {};
  for (const field of fields) {
    const text = draft[field.name] ?? "";
    if (text.trim() === "") {
      if (field.isRequired && isComplete) errors[field.name] = "This is needed.";
      continue;
    }
    const parsed = parse(field, text);
    if ("error" in parsed) errors[field.name] = parsed.error;
    else values[field.name] = parsed.value;
  }
  return { values, errors };
}

type Parsed = { readonly value: JsonValue } | { readonly error: string };

function parse(field: FormField, text: string): Parsed {
  switch (field.kind) {
    case "text":
      return { value: text };
    case "choice":
      return { value: field.choices[Number(text)] ?? null };
    case "boolean":
      return { value: text === "true" };
    case "integer":
    case "number":
      return parseNumber(field, text.trim());
    case "json":
      return parseJson(field, text);
  }
}

function parseNumber(field: FormField, text: string): Parsed {
  const value = Number(text);
  if (!Number.isFinite(value)) return { error: "This is not a number." };
  if (field.kind === "integer" && !Number.isInteger(value)) return { error: "A whole number is needed." };
  if (field.minimum !== undefined && value < field.minimum) return { error: `At least ${field.minimum}.` };
  if (field.maximum !== undefined && value > field.maximum) return { error: `At most ${field.maximum}.` };
  return { value };
}

function parseJson(field: FormField, text: string): Parsed {
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch {
    return { error: `This is not valid JSON. ${jsonExample(field)}` };
  }
  const type = Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
  return field.jsonType === "" || type === field.jsonType ? { value } : { error: jsonExample(field) };
}

/** How the JSON of a field looks. */
export function jsonExample(field: FormField): string {
  if (field.jsonType === "array") return 'A list, as ["a", "b"].';
  return field.jsonType === "object" ? 'An object, as {"a": 1}.' : "A text in quotes, a number, a list or an object.";
}

/** Input values as text for people, in the same form as the server's. */
export function inputText(values: JsonObject): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join("\n");
}

export function objectOf(value: JsonValue | undefined): JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonSchema) : {};
}

export function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}

function numberOf(value: JsonValue | undefined): number | undefined {
  return typeof value === "number" ? value : undefined;
}
