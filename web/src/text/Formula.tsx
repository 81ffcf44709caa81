import { memo, useEffect, useRef, useState } from "react";
import { parseFormula } from "./formulas";

type Render = (tex: string, element: HTMLElement, options: object) => void;

let loading: Promise<Render> | undefined;
let loadedRender: Render | undefined;

/** Loads KaTeX once, when the first formula is shown. */
function load(): Promise<Render> {
  loading ??= Promise.all([import("katex"), import("katex/dist/katex.min.css")])
    .then(([{ default: katex }]) => {
      loadedRender = katex.render;
      return katex.render;
    })
    .catch((error) => {
      loading = undefined;
      throw error;
    });
  return loading;
}

// Forbid links, images and HTML in a formula, and limit sizes and macro expansion.
const OPTIONS = {
  throwOnError: true,
  trust: false,
  strict: "ignore",
  maxSize: 20,
  maxExpand: 200,
  output: "htmlAndMathml",
};

/** Shows a TeX formula with KaTeX; its source until KaTeX is loaded, or if KaTeX rejects it. */
export const Formula = memo(function Formula({ source }: { source: string }) {
  const place = useRef<HTMLSpanElement>(null);
  const [render, setRender] = useState<Render | undefined>(() => loadedRender);
  const [failed, setFailed] = useState("");
  const { tex, display } = parseFormula(source);
  useEffect(() => {
    if (render) return;
    let isMounted = true;
    load().then(
      (loaded) => isMounted && setRender(() => loaded),
      () => {},
    );
    return () => {
      isMounted = false;
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
  const isRendered = render !== undefined && failed !== source;
  return (
    <span className={display ? "text-formula text-formula-display" : "text-formula"}>
      {isRendered ? <span ref={place} key="drawn" /> : <code key="raw">{source}</code>}
    </span>
  );
});
