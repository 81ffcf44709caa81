import { useId } from "react";
import { escapeInvisible } from "../text/invisibleCharacters";
import { type Draft, type FieldDraft, type FormErrors, type FormField, jsonExample, valueText } from "./schemaFields";
import "./form.css";

/** Maximum number of choices that are shown as buttons; more become a list that opens. */
const MAX_RADIOS = 8;
const MAX_ROWS = 12;
const MAX_PLACEHOLDER = 80;

interface FormFieldsProps {
  readonly fields: readonly FormField[];
  readonly draft: Draft;
  readonly errors: FormErrors;
  /** Label of the field of a single value. */
  readonly singleLabel?: string;
  /** Whether the fields take little room: in columns, with choices that open. */
  readonly isCompact?: boolean;
  onChange(draft: Draft): void;
}

/** The fields of a JSON Schema. The form around them, with its buttons, belongs to the caller. */
export function FormFields(props: FormFieldsProps) {
  const { fields, draft, errors, singleLabel = "", isCompact = false, onChange } = props;
  if (fields.length === 0) return null;
  return (
    <div className={isCompact ? "form-fields form-compact" : "form-fields"}>
      {fields.map((field) => (
        <Field
          key={field.name}
          field={field}
          title={field.title === "" ? singleLabel : field.title}
          isCompact={isCompact}
          value={draft[field.name] ?? ""}
          error={errors[field.name]}
          onChange={(value) => onChange({ ...draft, [field.name]: value })}
        />
      ))}
    </div>
  );
}

interface FieldProps {
  readonly field: FormField;
  readonly title: string;
  readonly isCompact: boolean;
  readonly value: FieldDraft;
  readonly error: string | undefined;
  onChange(value: FieldDraft): void;
}

/** One field with its label, its description and what is wrong with it. */
function Field(props: FieldProps) {
  const { field, title, isCompact, error } = props;
  const id = useId();
  const isGroup =
    field.kind === "choices" || (field.kind === "choice" && !isCompact && field.choices.length <= MAX_RADIOS);
  const label = (
    <>
      {escapeInvisible(title)}
      {field.isRequired && field.name !== "" && <span className="form-required"> required</span>}
    </>
  );
  const about = field.description !== "" && (
    <p id={`${id}-about`} className="form-about">
      {escapeInvisible(field.description)}
    </p>
  );
  const problem = error !== undefined && (
    <p id={`${id}-error`} className="form-error" role="alert">
      {error}
    </p>
  );
  const described = [field.description !== "" && `${id}-about`, error !== undefined && `${id}-error`];
  const describedBy = described.filter(Boolean).join(" ") || undefined;
  if (isGroup) {
    return (
      <fieldset className="form-field" aria-describedby={describedBy}>
        <legend>{label}</legend>
        {about}
        <ChoiceButtons {...props} name={id} />
        {problem}
      </fieldset>
    );
  }
  return (
    <div className={`form-field form-${field.kind}`}>
      <label htmlFor={id}>{label}</label>
      <Control {...props} id={id} describedBy={describedBy} />
      {about}
      {problem}
    </div>
  );
}

function ChoiceButtons({ field, value, error, name, onChange }: FieldProps & { readonly name: string }) {
  const chosen = typeof value === "string" ? [] : value;
  const isSingle = field.kind === "choice";
  const toggled = (index: number) =>
    chosen.includes(index) ? chosen.filter((one) => one !== index) : [...chosen, index].sort((a, b) => a - b);
  return (
    <div className="form-options">
      {field.choices.map((choice, index) => (
        <label className="form-option" key={JSON.stringify(choice.value)}>
          <input
            type={isSingle ? "radio" : "checkbox"}
            name={name}
            aria-invalid={error !== undefined || undefined}
            checked={chosen.includes(index)}
            onChange={() => onChange(isSingle ? [index] : toggled(index))}
          />
          <span>
            {escapeInvisible(choice.label)}
            {choice.description !== "" && <span className="quiet"> {escapeInvisible(choice.description)}</span>}
          </span>
        </label>
      ))}
    </div>
  );
}

interface ControlProps extends FieldProps {
  readonly id: string;
  readonly describedBy: string | undefined;
}

function Control({ field, isCompact, value, error, id, describedBy, onChange }: ControlProps) {
  const shared = {
    id,
    "aria-describedby": describedBy,
    "aria-invalid": error !== undefined || undefined,
    "aria-required": field.isRequired || undefined,
  };
  const text = typeof value === "string" ? value : "";
  switch (field.kind) {
    case "choice":
    case "choices":
      return (
        <select
          {...shared}
          value={typeof value === "string" ? "" : String(value[0] ?? "")}
          onChange={({ target }) => onChange(target.value === "" ? [] : [Number(target.value)])}
        >
          <option value="">{emptyOption(field)}</option>
          {field.choices.map((choice, index) => (
            <option key={JSON.stringify(choice.value)} value={index}>
              {escapeInvisible(choice.label)}
            </option>
          ))}
        </select>
      );
    case "integer":
    case "number":
      return (
        <input
          {...shared}
          inputMode={field.kind === "integer" && (field.minimum ?? -1) >= 0 ? "numeric" : "text"}
          autoComplete="off"
          placeholder={placeholderOf(field)}
          value={text}
          onChange={(event) => onChange(event.target.value)}
        />
      );
    default:
      return (
        <textarea
          {...shared}
          rows={rowsOf(field, text, isCompact)}
          dir={field.kind === "json" ? "ltr" : "auto"}
          spellCheck={field.kind !== "json"}
          placeholder={placeholderOf(field)}
          value={text}
          onChange={(event) => onChange(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
            event.preventDefault();
            event.currentTarget.form?.requestSubmit();
          }}
        />
      );
  }
}

/** Returns the height of a text in rows. In a form that is not compact, it grows with the text. */
function rowsOf({ kind, name }: FormField, text: string, isCompact: boolean): number {
  const least = kind === "json" || kind === "list" || name === "" ? 3 : 1;
  return isCompact ? least : Math.min(MAX_ROWS, Math.max(least, text.split("\n").length));
}

function emptyOption({ choices, defaultValue, isRequired }: FormField): string {
  if (defaultValue === undefined) return isRequired ? "Choose …" : "–";
  const found = choices.find(({ value }) => value === defaultValue);
  return `Default: ${escapeInvisible(found?.label ?? valueText(defaultValue))}`;
}

function placeholderOf(field: FormField): string {
  const { kind, defaultValue } = field;
  if (defaultValue === undefined || defaultValue === "")
    return kind === "json" ? jsonExample(field) : kind === "list" ? "One per line" : "";
  const text = escapeInvisible(valueText(defaultValue));
  return `Default: ${text.length > MAX_PLACEHOLDER ? `${text.slice(0, MAX_PLACEHOLDER)}…` : text}`;
}
