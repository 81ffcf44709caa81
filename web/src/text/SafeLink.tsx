import type { MouseEvent, ReactNode } from "react";
import { escapeInvisible } from "./invisibleCharacters";
import { anchorOf, hostname, isMisleading, safeUrl } from "./safeUrls";

/** Scrolls to an anchor in the same text. The URL stays, because its fragment is the page's route. */
function scrollToAnchor(event: MouseEvent<HTMLAnchorElement>, place: string) {
  event.preventDefault();
  const places = event.currentTarget.closest(".text")?.querySelectorAll<HTMLElement>("[data-anchor]") ?? [];
  const target = [...places].find((element) => element.dataset.anchor === place);
  target?.scrollIntoView({ block: "nearest" });
  target?.focus({ preventScroll: true });
}

/** Shows a link if its target is safe, otherwise its text with the URL beside it. */
export function SafeLink({ href, label, children }: { href: string; label: string; children: ReactNode }) {
  const place = anchorOf(href);
  if (place !== null) {
    return (
      <a href={`#${encodeURIComponent(place)}`} onClick={(event) => scrollToAnchor(event, place)}>
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
