/** React components for the elements of a Markdown tree. */

import type { Element, ElementContent } from "hast";
import type { Components } from "hast-util-to-jsx-runtime";
import { ImageOff } from "lucide-react";
import { type ReactNode, useRef } from "react";
import { serverUrl } from "../client/api";
import { CopyButton } from "../ui/CopyButton";
import { CodeBlock } from "./CodeBlock";
import { Formula } from "./Formula";
import { escapeInvisible } from "./invisibleCharacters";
import { SafeLink } from "./SafeLink";
import { safeImage, safeUrl } from "./safeUrls";

const LETTER = /\p{L}/u;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** Whether the first letter of a text belongs to a right-to-left script. */
function isRightToLeft(text: string): boolean {
  return RIGHT_TO_LEFT.test(LETTER.exec(text)?.[0] ?? "");
}

const MAX_URL_LENGTH = 120;

/** Shows the description and URL of an image on another server, which is not fetched. A click opens it in a tab. */
function RemoteImage({ address, alt }: { address: string; alt: string }) {
  const href = safeUrl(address);
  const where = escapeInvisible(address);
  const words = (
    <>
      <ImageOff size={14} aria-hidden="true" />
      <span className="text-image-alt">{escapeInvisible(alt) || "Image"}</span>
      <span className="text-address">
        {where.length > MAX_URL_LENGTH ? `${where.slice(0, MAX_URL_LENGTH)}…` : where}
      </span>
    </>
  );
  if (href === null || !href.startsWith("http")) return <span className="text-image-away">{words}</span>;
  return (
    <a
      className="text-image-away"
      href={href}
      target="_blank"
      rel="noopener noreferrer nofollow"
      title="Open the image"
    >
      {words}
    </a>
  );
}

function toTabSeparated(table: HTMLTableElement | null): string {
  const cell = (element: HTMLTableCellElement) => (element.textContent ?? "").replace(/[\t\n]+/g, " ").trim();
  return [...(table?.rows ?? [])].map((row) => [...row.cells].map(cell).join("\t")).join("\n");
}

/** A table that scrolls on its own and can be copied as tab-separated values. */
export function Table({ children }: { children: ReactNode }) {
  const table = useRef<HTMLTableElement>(null);
  return (
    <div className="text-table">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section className="text-table-scroll" tabIndex={0} aria-label="Table">
        <table ref={table}>{children}</table>
      </section>
      <div className="text-table-copy">
        <CopyButton text={() => toTabSeparated(table.current)} label="Copy table" />
      </div>
    </div>
  );
}

interface Props {
  className?: string | undefined;
  node?: Element | undefined;
  children?: ReactNode;
}

function textIn(node: Element | ElementContent | undefined): string {
  if (node?.type === "text") return node.value;
  return node?.type === "element" ? node.children.map(textIn).join("") : "";
}

const property = (node: Element | undefined, name: string) => {
  const value = node?.properties[name];
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
};

/** A heading of a text. Its level is one below that in the text, because the page has its own headings. */
const headingElement = (Tag: "h2" | "h3" | "h4" | "h5" | "h6", look: string) =>
  function Heading({ node, children }: Props) {
    return (
      <Tag className={look} dir="auto" data-anchor={property(node, "dataAnchor")} tabIndex={-1}>
        {children}
      </Tag>
    );
  };

const cellElement = (Tag: "td" | "th") =>
  function Cell({ node, children }: Props) {
    const align = property(node, "align");
    const known = align === "right" || align === "center" ? align : undefined;
    return (
      <Tag dir="auto" style={known && { textAlign: known }}>
        {children}
      </Tag>
    );
  };

/** A list or a quote. Its text direction is computed, because `dir=auto` ignores children that have `dir=auto` too. */
const blockElement = (Tag: "ul" | "ol" | "blockquote") =>
  function Box({ node, ...rest }: Props) {
    return <Tag {...rest} dir={isRightToLeft(textIn(node)) ? "rtl" : undefined} />;
  };

function Link({ node, children }: Props) {
  return (
    <SafeLink href={property(node, "href")} label={textIn(node)}>
      {children}
    </SafeLink>
  );
}

function Image({ node }: Props) {
  const source = property(node, "src");
  const alt = property(node, "alt");
  const image = safeImage(source);
  if (image === null) return <RemoteImage address={source} alt={alt} />;
  return (
    <img className="text-image" src={image.startsWith("data:") ? image : serverUrl(image)} alt={alt} loading="lazy" />
  );
}

function Code({ node, children }: Props) {
  return node?.properties.dataFormula === undefined ? <code>{children}</code> : <Formula source={textIn(node)} />;
}

/** Fenced code inside a list or a quote. Other fenced code is a separate block, see `markdownBlocks.ts`. */
function Pre({ node }: Props) {
  const code = node?.children.find((child) => child.type === "element");
  const classes = code?.type === "element" ? code.properties.className : [];
  const named = Array.isArray(classes) ? classes.map(String).find((name) => name.startsWith("language-")) : undefined;
  return <CodeBlock code={textIn(node).replace(/\n$/, "")} language={named?.slice("language-".length) ?? ""} />;
}

function Task({ node }: Props) {
  const isDone = node?.properties.checked === true;
  return <input type="checkbox" checked={isDone} disabled readOnly aria-label={isDone ? "done" : "to do"} />;
}

export const ELEMENTS: Partial<Components> = {
  h1: headingElement("h2", "text-h1"),
  h2: headingElement("h3", "text-h2"),
  h3: headingElement("h4", "text-h3"),
  h4: headingElement("h5", "text-h4"),
  h5: headingElement("h6", "text-h4"),
  h6: headingElement("h6", "text-h4"),
  p: ({ children }) => <p dir="auto">{children}</p>,
  ul: blockElement("ul"),
  ol: blockElement("ol"),
  blockquote: blockElement("blockquote"),
  td: cellElement("td"),
  th: cellElement("th"),
  a: Link,
  img: Image,
  code: Code,
  pre: Pre,
  input: Task,
  table: ({ children }) => <Table>{children}</Table>,
};
