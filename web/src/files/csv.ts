/** Parses comma- or tab-separated values. Pure. */

interface Sheet {
  readonly rows: readonly (readonly string[])[];
  /** Whether the file has more rows than this sheet. */
  readonly isTruncated: boolean;
}

/** Returns the separator that is most frequent in the first line. */
function separatorOf(text: string): string {
  const line = text.split("\n", 1)[0] ?? "";
  const counts = [",", ";", "\t", "|"].map((sign) => ({ sign, count: line.split(sign).length }));
  return counts.reduce((best, one) => (one.count > best.count ? one : best)).sign;
}

export function parseCsv(text: string, separator = separatorOf(text), maxRows = 500, maxColumns = 50): Sheet {
  const rows: string[][] = [];
  let row: string[] = [];
  let value = "";
  let quoted = false;
  let at = text.startsWith("\ufeff") ? 1 : 0;
  const endValue = () => {
    if (row.length < maxColumns) row.push(value);
    value = "";
  };
  for (; at < text.length && rows.length < maxRows; at++) {
    const char = text.charAt(at);
    if (quoted) {
      if (char !== '"') value += char;
      else if (text.charAt(at + 1) === '"') {
        value += '"';
        at += 1;
      } else quoted = false;
    } else if (char === '"' && value === "") quoted = true;
    else if (char === separator) endValue();
    else if (char === "\n") {
      endValue();
      rows.push(row);
      row = [];
    } else if (char !== "\r") value += char;
  }
  if (rows.length < maxRows && (value !== "" || row.length > 0)) {
    endValue();
    rows.push(row);
  }
  return { rows, isTruncated: text.slice(at).trim() !== "" };
}
