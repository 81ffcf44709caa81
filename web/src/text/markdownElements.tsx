/** What the elements of a markdown tree become on the page. */

import type { Element, ElementContent } from "hast";
import type { Components } from "hast-util-to-jsx-runtime";
import type { ReactNode } from "react";
import { address } from "../wire/api";
import { CodeBlock } from "./CodeBlock";
import { isRightToLeft } from "./direction";
import { Formula } from "./Formula";
import { RemoteImage } from "./RemoteImage";
import { SafeLink } from "./SafeLink";
import { Table } from "./Table";
import { safeImage } from "./urls";

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

/** Headings of a text stand one level below those of the page. */
const heading = (Tag: "h2" | "h3" | "h4" | "h5" | "h6", look: string) =>
  function Heading({ node, children }: Props) {
    return (
      <Tag className={look} dir="auto" data-anchor={property(node, "dataAnchor")} tabIndex={-1}>
        {children}
      </Tag>
    );
  };

const cell = (Tag: "td" | "th") =>
  function Cell({ node, children }: Props) {
    const align = property(node, "align");
    const known = align === "right" || align === "center" ? align : undefined;
    return (
      <Tag dir="auto" style={known && { textAlign: known }}>
        {children}
      </Tag>
    );
  };

/** Boxes whose marks stand at their beginning: `auto` would not look into the paragraphs in them, which say `auto` too. */
const box = (Tag: "ul" | "ol" | "blockquote") =>
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

function Picture({ node }: Props) {
  const source = property(node, "src");
  const alt = property(node, "alt");
  const image = safeImage(source);
  if (image === null) return <RemoteImage address={source} alt={alt} />;
  return (
    <img className="text-image" src={image.startsWith("data:") ? image : address(image)} alt={alt} loading="lazy" />
  );
}

function Code({ node, children }: Props) {
  return node?.properties.dataFormula === undefined ? <code>{children}</code> : <Formula source={textIn(node)} />;
}

/** Code within a list or a quote; at the top it is a block of its own and never comes here. */
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
  h1: heading("h2", "text-h1"),
  h2: heading("h3", "text-h2"),
  h3: heading("h4", "text-h3"),
  h4: heading("h5", "text-h4"),
  h5: heading("h6", "text-h4"),
  h6: heading("h6", "text-h4"),
  p: ({ children }) => <p dir="auto">{children}</p>,
  ul: box("ul"),
  ol: box("ol"),
  blockquote: box("blockquote"),
  td: cell("td"),
  th: cell("th"),
  a: Link,
  img: Picture,
  code: Code,
  pre: Pre,
  input: Task,
  table: ({ children }) => <Table>{children}</Table>,
};
