/** Turns the JSON Schema of an answer into the fields of a form, and what the user has typed into the answer. Pure. */

import type { JsonObject, JsonValue } from "../wire/events";
import { listOf, objectOf, resolve } from "./schemaFields";

/** `json` is a value that the user types as JSON, `list` one text per line. */
export type FieldKind = "text" | "number" | "choice" | "choices" | "list" | "json";

export interface Choice {
  readonly value: JsonValue;
  readonly label: string;
  readonly description: string;
}

export interface FormField {
  /** Name of the property; "" if the form is about a single value. */
  readonly name: string;
  readonly label: string;
  readonly description: string;
  readonly kind: FieldKind;
  readonly isRequired: boolean;
  readonly choices: readonly Choice[];
  readonly schema: JsonObject;
}

/** What the user has typed or chosen: a text, or the indexes of choices. */
export type FieldValue = string | readonly number[];
export type FormValues = Readonly<Record<string, FieldValue>>;
export type FormErrors = Readonly<Record<string, string>>;
export type FormResult =
  | { readonly isValid: true; readonly value: JsonValue }
  | { readonly isValid: false; readonly errors: FormErrors };

/** Returns a field for each property of an object schema, or one field for any other schema. */
export function formFields(root: JsonObject): FormField[] {
  const schema = resolve(root, root);
  const properties = objectOf(schema.properties);
  const names = Object.keys(properties);
  if (names.length === 0) return [field("", root, root, true)];
  const required = listOf(schema.required);
  return names.map((name) => field(name, objectOf(properties[name]), root, required.includes(name)));
}

function field(name: string, given: JsonObject, root: JsonObject, isRequired: boolean): FormField {
  const schema = withoutNull(resolve(given, root), root);
  const own = choicesOf(schema);
  const items = choicesOf(resolve(objectOf(schema.items), root));
  const label = typeof schema.title === "string" && schema.title !== "" ? schema.title : name;
  const description = typeof schema.description === "string" ? schema.description : "";
  const kind = own.length > 0 ? "choice" : items.length > 0 ? "choices" : kindOf(schema, root);
  return { name, label, description, kind, isRequired, choices: own.length > 0 ? own : items, schema };
}

function kindOf(schema: JsonObject, root: JsonObject): FieldKind {
  const types = typesOf(schema);
  if (types.length === 0) return schema.anyOf || schema.oneOf || schema.properties ? "json" : "text";
  if (types.includes("string")) return "text";
  if (types.includes("number") || types.includes("integer")) return "number";
  const items = resolve(objectOf(schema.items), root);
  const isTextList = types.includes("array") && (typesOf(items).includes("string") || Object.keys(items).length === 0);
  return isTextList ? "list" : "json";
}

/** Returns the values that a schema lists. A boolean lists Yes and No. */
function choicesOf(schema: JsonObject): Choice[] {
  const values = listOf(schema.enum);
  if (values.length > 0) return values.map((value) => ({ value, label: textOf(value), description: "" }));
  const alternatives = listOf(schema.oneOf ?? schema.anyOf).map(objectOf);
  if (alternatives.length > 0 && alternatives.every((one) => one.const !== undefined)) {
    return alternatives.map((one) => ({
      value: one.const ?? null,
      label: typeof one.title === "string" ? one.title : textOf(one.const ?? null),
      description: typeof one.description === "string" ? one.description : "",
    }));
  }
  if (typesOf(schema).join() !== "boolean") return [];
  return [
    { value: true, label: "Yes", description: "" },
    { value: false, label: "No", description: "" },
  ];
}

/** Returns the values with which a form begins: the defaults of the schema. */
export function initialValues(fields: readonly FormField[]): FormValues {
  return Object.fromEntries(fields.map((one) => [one.name, initialValue(one)]));
}

function initialValue({ kind, choices, schema }: FormField): FieldValue {
  const preset = schema.default ?? null;
  if (kind === "choice") return indexesOf([preset], choices);
  if (kind === "choices") return indexesOf(listOf(preset), choices);
  if (preset === null) return "";
  if (kind === "list") return listOf(preset).map(textOf).join("\n");
  return kind === "json" ? JSON.stringify(preset, null, 2) : textOf(preset);
}

function indexesOf(values: readonly JsonValue[], choices: readonly Choice[]): number[] {
  const known = choices.map(({ value }) => JSON.stringify(value));
  return values.map((value) => known.indexOf(JSON.stringify(value))).filter((index) => index >= 0);
}

/** Returns the JSON value of a filled-in form, or an error message for each wrong field. */
export function readForm(fields: readonly FormField[], values: FormValues): FormResult {
  const errors: Record<string, string> = {};
  const read: [string, JsonValue][] = [];
  for (const one of fields) {
    const typed = values[one.name] ?? "";
    const mayBeEmpty = one.isRequired && one.kind === "text" && one.name !== "";
    if (typed.length === 0 && !mayBeEmpty) {
      if (!one.isRequired) continue;
      if (one.kind === "choices" || one.kind === "list") read.push([one.name, []]);
      else errors[one.name] = one.kind === "choice" ? "Choose one." : "Fill in a value.";
      continue;
    }
    const value = readField(one, typed);
    if (typeof value === "string") errors[one.name] = value;
    else read.push([one.name, value.value]);
  }
  if (Object.keys(errors).length > 0) return { isValid: false, errors };
  const single = fields.length === 1 && fields[0]?.name === "";
  return { isValid: true, value: single ? (read[0]?.[1] ?? null) : Object.fromEntries(read) };
}

/** Returns the value of a field, or an error message. */
function readField({ kind, choices, schema }: FormField, typed: FieldValue): { readonly value: JsonValue } | string {
  if (typeof typed !== "string") {
    const chosen = typed.map((index) => choices[index]?.value ?? null);
    return { value: kind === "choice" ? (chosen[0] ?? null) : chosen };
  }
  if (kind === "list") return { value: typed.split("\n").filter((line) => line.trim() !== "") };
  if (kind === "number") {
    const value = Number(typed);
    if (typed.trim() === "" || !Number.isFinite(value)) return "This is not a number.";
    const isWhole =
      !typesOf(schema).includes("integer") || typesOf(schema).includes("number") || Number.isInteger(value);
    return isWhole ? { value } : "This is not a whole number.";
  }
  if (kind !== "json") return { value: typed };
  try {
    return { value: JSON.parse(typed) as JsonValue };
  } catch (error) {
    return `This is not valid JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Returns the only alternative besides null, as pydantic writes optional fields: `anyOf: [{...}, {type: "null"}]`. */
function withoutNull(schema: JsonObject, root: JsonObject): JsonObject {
  const { anyOf, ...rest } = schema;
  const others = listOf(anyOf)
    .map((one) => resolve(objectOf(one), root))
    .filter((one) => one.type !== "null");
  return others.length === 1 && listOf(anyOf).length > 1 ? { ...others[0], ...rest } : schema;
}

function typesOf(schema: JsonObject): string[] {
  const types = typeof schema.type === "string" ? [schema.type] : listOf(schema.type);
  return types.filter((type): type is string => typeof type === "string" && type !== "null");
}

const textOf = (value: JsonValue): string => (typeof value === "string" ? value : JSON.stringify(value));
