import { memo, useEffect, useRef, useState } from "react";
import { parseFormula } from "./formulas";

type Render = (tex: string, element: HTMLElement, options: object) => void;

let arriving: Promise<Render> | undefined;
let arrived: Render | undefined;

/** Loads KaTeX with the first formula. */
function load(): Promise<Render> {
  arriving ??= Promise.all([import("katex"), import("katex/dist/katex.min.css")])
    .then(([{ default: katex }]) => {
      arrived = katex.render;
      return katex.render;
    })
    .catch((error) => {
      arriving = undefined;
      throw error;
    });
  return arriving;
}

// No links, images or HTML in a formula; sizes and macro expansion are limited.
const OPTIONS = {
  throwOnError: true,
  trust: false,
  strict: "ignore",
  maxSize: 20,
  maxExpand: 200,
  output: "htmlAndMathml",
};

/** A formula; its source until KaTeX is loaded, or if KaTeX rejects it. */
export const Formula = memo(function Formula({ source }: { source: string }) {
  const place = useRef<HTMLSpanElement>(null);
  const [render, setRender] = useState<Render | undefined>(() => arrived);
  const [failed, setFailed] = useState("");
  const { tex, display } = parseFormula(source);
  useEffect(() => {
    if (render) return;
    let wanted = true;
    load().then(
      (loaded) => wanted && setRender(() => loaded),
      () => {},
    );
    return () => {
      wanted = false;
    };
  }, [render]);
  useEffect(() => {
    if (!render || !place.current) return;
    try {
      // KaTeX creates DOM nodes; no HTML is parsed.
      render(tex, place.current, { ...OPTIONS, displayMode: display });
    } catch {
      place.current.replaceChildren();
      setFailed(source);
    }
  }, [render, tex, display, source]);
  const isDrawn = render !== undefined && failed !== source;
  return (
    <span className={display ? "text-formula text-formula-display" : "text-formula"}>
      {isDrawn ? <span ref={place} key="drawn" /> : <code key="raw">{source}</code>}
    </span>
  );
});
