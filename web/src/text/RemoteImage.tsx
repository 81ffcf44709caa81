import { ImageOff } from "lucide-react";
import { visible } from "./invisibleCharacters";
import { safeAddress } from "./urls";

const SHOWN = 120;

/** An image that is not fetched: what it shows in words, and where it is. A click opens it in a new tab. */
export function RemoteImage({ address, alt }: { address: string; alt: string }) {
  const href = safeAddress(address);
  const where = visible(address);
  const words = (
    <>
      <ImageOff size={14} aria-hidden="true" />
      <span className="text-image-alt">{visible(alt) || "Image"}</span>
      <span className="text-address">{where.length > SHOWN ? `${where.slice(0, SHOWN)}…` : where}</span>
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
