/** Turns a JSON Schema into the fields of a form, and what the user types into a value. Pure. */

import type { JsonObject, JsonValue } from "../wire/events";

export type JsonSchema = { readonly [key: string]: JsonValue };

/**
 * How a field is edited: `choices` are several values of a list, `list` is one text per line, `json` a value as JSON, and
 * `any` a value as JSON or else as a text.
 */
export type FieldKind = "text" | "integer" | "number" | "choice" | "choices" | "list" | "json" | "any";

export interface Choice {
  readonly value: JsonValue;
  readonly label: string;
  readonly description: string;
}

export interface FormField {
  /** Name of the property; "" if the form is about a single value. */
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly kind: FieldKind;
  readonly isRequired: boolean;
  readonly choices: readonly Choice[];
  /** The default of the schema; undefined if there is none, or null. */
  readonly defaultValue: JsonValue | undefined;
  readonly minimum: number | undefined;
  readonly maximum: number | undefined;
  /** The JSON type that a JSON field needs; "" if any will do. */
  readonly jsonType: "" | "array" | "object";
}

/** What the user has typed into a field, or the indexes of the choices. */
export type FieldDraft = string | readonly number[];
/** What the user has filled in, by the name of the field. */
export type Draft = Readonly<Record<string, FieldDraft>>;
/** What is wrong, by the name of the field. */
export type FormErrors = Readonly<Record<string, string>>;

/** Returns a field for each property of an object schema, or one field for any other schema. */
export function formFields(root: JsonSchema): FormField[] {
  const fields = propertyFields(root);
  return fields.length > 0 ? fields : [fieldOf("", root, root, true)];
}

/** Returns a field for each property of an object schema. */
export function propertyFields(root: JsonSchema | undefined): FormField[] {
  if (root === undefined) return [];
  const schema = resolve(root, root);
  const required = listOf(schema.required);
  return Object.entries(objectOf(schema.properties)).map(([name, property]) =>
    fieldOf(name, objectOf(property), root, required.includes(name)),
  );
}

/** Returns a field whose value is typed as JSON. */
export function jsonField(part: Partial<FormField> & { readonly name: string }): FormField {
  return {
    title: part.name,
    description: "",
    isRequired: false,
    defaultValue: undefined,
    minimum: undefined,
    maximum: undefined,
    jsonType: "",
    ...part,
    kind: "json",
    choices: [],
  };
}

function fieldOf(name: string, given: JsonSchema, root: JsonSchema, isRequired: boolean): FormField {
  const schema = withoutNull(resolve(given, root), root);
  const own = choicesOf(schema, root);
  const ofItems = typesOf(schema).includes("array") ? choicesOf(resolve(objectOf(schema.items), root), root) : [];
  const [type] = typesOf(schema);
  return {
    name,
    title: textOr(schema.title, name),
    description: textOr(schema.description, ""),
    kind: own.length > 0 ? "choice" : ofItems.length > 0 ? "choices" : kindOf(name, schema, root),
    isRequired,
    choices: own.length > 0 ? own : ofItems,
    defaultValue: schema.default ?? undefined,
    minimum: numberOf(schema.minimum),
    maximum: numberOf(schema.maximum),
    jsonType: typesOf(schema).length === 1 && (type === "array" || type === "object") ? type : "",
  };
}

function kindOf(name: string, schema: JsonSchema, root: JsonSchema): FieldKind {
  const types = typesOf(schema);
  if (types.length === 0) {
    if (schema.anyOf !== undefined || schema.oneOf !== undefined) return "json";
    return name === "" ? "text" : "any";
  }
  if (types.includes("string")) return "text";
  if (types.includes("number")) return "number";
  if (types.includes("integer")) return "integer";
  const ofItems = typesOf(resolve(objectOf(schema.items), root));
  return types.includes("array") && ofItems.join() === "string" ? "list" : "json";
}

/** Returns the values of which a schema accepts one; empty if it accepts others. */
function choicesOf(schema: JsonSchema, root: JsonSchema): readonly Choice[] {
  if (schema.const !== undefined) {
    const label = textOr(schema.title, valueText(schema.const));
    return [{ value: schema.const, label, description: textOr(schema.description, "") }];
  }
  const listed = listOf(schema.enum);
  if (listed.length > 0) return listed.map((value) => ({ value, label: valueText(value), description: "" }));
  if (typesOf(schema).join() === "boolean") return YES_OR_NO;
  const parts = partsOf(schema, root).map((part) => choicesOf(part, root));
  return parts.every((choices) => choices.length > 0) ? parts.flat() : [];
}

const YES_OR_NO: readonly Choice[] = [
  { value: true, label: "Yes", description: "" },
  { value: false, label: "No", description: "" },
];

/** Returns the only alternative besides null, as pydantic writes optional fields: `anyOf: [{...}, {type: "null"}]`. */
function withoutNull(schema: JsonSchema, root: JsonSchema): JsonSchema {
  const parts = partsOf(schema, root);
  const others = parts.filter((part) => part.type !== "null");
  if (others.length === parts.length) return schema;
  const { anyOf: _any, oneOf: _one, ...rest } = schema;
  return others.length === 1 ? { ...others[0], ...rest } : { ...rest, anyOf: others };
}

function partsOf(schema: JsonSchema, root: JsonSchema): readonly JsonSchema[] {
  return listOf(schema.anyOf ?? schema.oneOf).map((part) => resolve(objectOf(part), root));
}

const MAX_REFERENCES = 20;

/** A schema with its top-level reference, as `#/$defs/Name`, replaced by that part of the root schema. */
function resolve(schema: JsonSchema, root: JsonSchema): JsonSchema {
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

/** Returns a draft in which each field has its default. */
export function defaultDraft(fields: readonly FormField[]): Draft {
  return Object.fromEntries(fields.map((field) => [field.name, draftOf(field, field.defaultValue)]));
}

export interface FilledForm {
  readonly fields: readonly FormField[];
  readonly draft: Draft;
}

/**
 * Returns the form of an object schema, filled in with an object. A value that its field would change is edited as JSON.
 * Null if the schema does not name every key of the object, so that it can be edited only as a whole.
 */
export function filledForm(schema: JsonSchema, values: JsonObject): FilledForm | null {
  const found = propertyFields(schema);
  const names = new Set(found.map((field) => field.name));
  if (found.length === 0 || Object.keys(values).some((name) => !names.has(name))) return null;
  const fields = found.map((field) => (isLossless(field, values[field.name]) ? field : jsonField(field)));
  return { fields, draft: Object.fromEntries(fields.map((field) => [field.name, draftOf(field, values[field.name])])) };
}

/** Whether reading the draft of a value returns the same value. */
function isLossless(field: FormField, value: JsonValue | undefined): boolean {
  if (value === undefined) return true;
  const { values } = collect([field], { [field.name]: draftOf(field, value) }, { isComplete: true, allowsEmpty: true });
  return JSON.stringify(values[field.name]) === JSON.stringify(value);
}

function draftOf({ kind, choices }: FormField, value: JsonValue | undefined): FieldDraft {
  if (kind === "choice") return value === undefined ? [] : indexesOf([value], choices);
  if (kind === "choices") return indexesOf(listOf(value), choices);
  if (value === undefined) return "";
  if (kind === "list") return listOf(value).map(valueText).join("\n");
  return kind === "json" ? JSON.stringify(value, null, 2) : valueText(value);
}

function indexesOf(values: readonly JsonValue[], choices: readonly Choice[]): number[] {
  const known = choices.map(({ value }) => JSON.stringify(value));
  return values.map((value) => known.indexOf(JSON.stringify(value))).filter((index) => index >= 0);
}

export interface Collected {
  readonly values: JsonObject;
  readonly errors: FormErrors;
}

interface CollectOptions {
  /** Whether required fields have to be filled in. */
  readonly isComplete: boolean;
  /** Whether a required text or list may be empty. */
  readonly allowsEmpty: boolean;
}

/** Returns the values that the user has filled in. Optional fields that are empty are left out. */
export function collect(fields: readonly FormField[], draft: Draft, options: CollectOptions): Collected {
  const values: Record<string, JsonValue> = {};
  const errors: Record<string, string> = {};
  for (const field of fields) {
    const typed = draft[field.name] ?? "";
    const isEmpty = typeof typed === "string" ? typed.trim() === "" : typed.length === 0;
    const mayBeEmpty = options.allowsEmpty && field.name !== "" && ["text", "choices", "list"].includes(field.kind);
    if (isEmpty && !field.isRequired) continue;
    if (isEmpty && !mayBeEmpty) {
      if (options.isComplete) errors[field.name] = field.kind === "choice" ? "Choose one." : "Fill in a value.";
      continue;
    }
    const parsed = parse(field, typed);
    if ("error" in parsed) errors[field.name] = parsed.error;
    else values[field.name] = parsed.value;
  }
  return { values, errors };
}

type Parsed = { readonly value: JsonValue } | { readonly error: string };

function parse(field: FormField, typed: FieldDraft): Parsed {
  const chosen = typeof typed === "string" ? [] : typed.map((index) => field.choices[index]?.value ?? null);
  const text = typeof typed === "string" ? typed : "";
  switch (field.kind) {
    case "text":
      return { value: text };
    case "choice":
      return { value: chosen[0] ?? null };
    case "choices":
      return { value: chosen };
    case "list":
      return { value: text.split("\n").filter((line) => line.trim() !== "") };
    case "integer":
    case "number":
      return parseNumber(field, text.trim());
    case "json":
      return parseJson(field, text);
    case "any":
      return { value: jsonIn(text) ?? text };
  }
}

function parseNumber(field: FormField, text: string): Parsed {
  const value = Number(text);
  if (!Number.isFinite(value)) return { error: "This is not a number." };
  if (field.kind === "integer" && !Number.isInteger(value)) return { error: "This is not a whole number." };
  if (field.minimum !== undefined && value < field.minimum) return { error: `At least ${field.minimum}.` };
  if (field.maximum !== undefined && value > field.maximum) return { error: `At most ${field.maximum}.` };
  return { value };
}

function parseJson(field: FormField, text: string): Parsed {
  const value = jsonIn(text);
  if (value === undefined) return { error: `This is not valid JSON. ${jsonExample(field)}` };
  const type = Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
  return field.jsonType === "" || type === field.jsonType ? { value } : { error: jsonExample(field) };
}

function jsonIn(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

/** How the JSON of a field looks. */
export function jsonExample(field: FormField): string {
  if (field.jsonType === "array") return 'A list, as ["a", "b"].';
  return field.jsonType === "object" ? 'An object, as {"a": 1}.' : "A text in quotes, a number, a list or an object.";
}

/** A value as people read it: a text without quotes, anything else as JSON. */
export function valueText(value: JsonValue): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function typesOf(schema: JsonSchema): string[] {
  const types = typeof schema.type === "string" ? [schema.type] : listOf(schema.type);
  return types.filter((type): type is string => typeof type === "string" && type !== "null");
}

function objectOf(value: JsonValue | undefined): JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonSchema) : {};
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}

function numberOf(value: JsonValue | undefined): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function textOr(value: JsonValue | undefined, other: string): string {
  return typeof value === "string" && value !== "" ? value : other;
}
