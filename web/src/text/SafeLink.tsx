import type { MouseEvent, ReactNode } from "react";
import { escapeInvisible } from "./invisibleCharacters";
import { anchorOf, hostname, isMisleading, safeUrl } from "./urls";

/** Goes to a place in the same text, by hand: the page's own address belongs to its route, and not to a text. */
function go(event: MouseEvent<HTMLAnchorElement>, place: string) {
  event.preventDefault();
  const places = event.currentTarget.closest(".text")?.querySelectorAll<HTMLElement>("[data-anchor]") ?? [];
  const target = [...places].find((element) => element.dataset.anchor === place);
  target?.scrollIntoView({ block: "nearest" });
  target?.focus({ preventScroll: true });
}

/** A link of a text, if it leads somewhere harmless; else its words with the address beside them. */
export function SafeLink({ href, label, children }: { href: string; label: string; children: ReactNode }) {
  const place = anchorOf(href);
  if (place !== null) {
    return (
      <a href={`#${encodeURIComponent(place)}`} onClick={(event) => go(event, place)}>
        {children}
      </a>
    );
  }
  const address = safeUrl(href);
  if (address === null) {
    const shown = escapeInvisible(href);
    return (
      <span className="text-unlinked">
        {children}
        {shown && shown !== label && <code className="text-address">{shown}</code>}
      </span>
    );
  }
  return (
    <>
      <a href={address} target="_blank" rel="noopener noreferrer nofollow" title={address}>
        {children}
      </a>
      {isMisleading(label, address) && <span className="text-host"> ({hostname(address)})</span>}
    </>
  );
}
