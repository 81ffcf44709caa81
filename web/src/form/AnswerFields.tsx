import { useId } from "react";
import { escapeInvisible } from "../text/invisibleCharacters";
import type { FieldValue, FormErrors, FormField, FormValues } from "./answerSchema";
import "./answerFields.css";

/** Maximum number of choices that are shown as buttons; more become a list that opens. */
const MAX_RADIOS = 8;

interface FormProps {
  readonly fields: readonly FormField[];
  readonly values: FormValues;
  readonly errors: FormErrors;
  /** Label of a form with a single value. */
  readonly label: string;
  onChange(values: FormValues): void;
}

/** The fields of an answer, by its JSON Schema. The form around them, with its buttons, belongs to the caller. */
export function AnswerFields({ fields, values, errors, label, onChange }: FormProps) {
  return (
    <div className="schema-form">
      {fields.map((field) => (
        <Field
          key={field.name}
          field={field}
          label={field.label === "" ? label : field.label}
          value={values[field.name] ?? ""}
          error={errors[field.name] ?? ""}
          onChange={(value) => onChange({ ...values, [field.name]: value })}
        />
      ))}
    </div>
  );
}

interface FieldProps {
  readonly field: FormField;
  readonly label: string;
  readonly value: FieldValue;
  readonly error: string;
  onChange(value: FieldValue): void;
}

function Field(props: FieldProps) {
  const { field, label, error } = props;
  const id = useId();
  const title = `${escapeInvisible(label)}${field.isRequired ? "" : " (optional)"}`;
  const about = field.description !== "" && (
    <p className="schema-about" id={`${id}-about`}>
      {escapeInvisible(field.description)}
    </p>
  );
  const problem = error !== "" && (
    <p className="tool-error" role="alert" id={`${id}-error`}>
      {error}
    </p>
  );
  const isGroup = field.kind === "choices" || (field.kind === "choice" && field.choices.length <= MAX_RADIOS);
  if (isGroup) {
    return (
      <fieldset className="schema-field">
        <legend>{title}</legend>
        {about}
        <ChoiceButtons {...props} name={id} />
        {problem}
      </fieldset>
    );
  }
  return (
    <div className="schema-field">
      <label htmlFor={id}>{title}</label>
      {about}
      <Input {...props} id={id} />
      {problem}
    </div>
  );
}

function ChoiceButtons({ field, value, name, onChange }: FieldProps & { readonly name: string }) {
  const chosen = typeof value === "string" ? [] : value;
  const isSingle = field.kind === "choice";
  const toggled = (index: number) =>
    chosen.includes(index) ? chosen.filter((one) => one !== index) : [...chosen, index].sort((a, b) => a - b);
  return (
    <div className="schema-choices">
      {field.choices.map((choice, index) => (
        <label className="schema-choice" key={JSON.stringify(choice.value)}>
          <input
            type={isSingle ? "radio" : "checkbox"}
            name={name}
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

function Input({ field, value, error, id, onChange }: FieldProps & { readonly id: string }) {
  const describedBy = [field.description && `${id}-about`, error && `${id}-error`].filter(Boolean).join(" ");
  const common = { id, "aria-describedby": describedBy || undefined, "aria-invalid": error !== "" || undefined };
  const text = typeof value === "string" ? value : "";
  if (field.kind === "choice") {
    const index = typeof value === "string" ? "" : String(value[0] ?? "");
    return (
      <select
        {...common}
        className="schema-input"
        value={index}
        onChange={(event) => onChange(event.target.value === "" ? [] : [Number(event.target.value)])}
      >
        <option value="">Choose …</option>
        {field.choices.map((choice, position) => (
          <option key={JSON.stringify(choice.value)} value={position}>
            {escapeInvisible(choice.label)}
          </option>
        ))}
      </select>
    );
  }
  const isLine = field.kind === "number" || (field.kind === "text" && field.name !== "");
  if (isLine) {
    return (
      <input
        {...common}
        className="schema-input"
        inputMode={field.kind === "number" ? "decimal" : undefined}
        dir="auto"
        value={text}
        onChange={(event) => onChange(event.target.value)}
      />
    );
  }
  return (
    <textarea
      {...common}
      className={`schema-input${field.kind === "json" ? " schema-json" : ""}`}
      rows={field.kind === "json" ? 6 : 3}
      dir="auto"
      spellCheck={field.kind !== "json"}
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
