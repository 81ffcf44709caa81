// Exits with 0 if web/node_modules has the packages of web/package-lock.json. tools/web.sh runs it in web/.
import { readFileSync } from "node:fs";

const packagesIn = (path) => JSON.parse(readFileSync(path, "utf8")).packages;

try {
  const wanted = packagesIn("package-lock.json");
  const found = packagesIn("node_modules/.package-lock.json");
  // Optional packages are missing on other platforms.
  const missing = Object.keys(wanted).filter((name) => name && !wanted[name].optional && !found[name]);
  const outdated = Object.keys(found).filter((name) => wanted[name]?.version !== found[name].version);
  process.exit(missing.length + outdated.length ? 1 : 0);
} catch {
  process.exit(1);
}
