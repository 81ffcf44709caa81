// Ends well if web/node_modules holds what web/package-lock.json names. Called in web/ by tools/web.sh.
import { readFileSync } from "node:fs";

const packagesIn = (path) => JSON.parse(readFileSync(path, "utf8")).packages;

try {
  const wanted = packagesIn("package-lock.json");
  const found = packagesIn("node_modules/.package-lock.json");
  // What is optional is left out on machines of another kind.
  const missing = Object.keys(wanted).filter((name) => name && !wanted[name].optional && !found[name]);
  const other = Object.keys(found).filter((name) => wanted[name]?.version !== found[name].version);
  process.exit(missing.length + other.length ? 1 : 0);
} catch {
  process.exit(1);
}
