// One script of the page and all of @grafana/ui.
import { build } from "esbuild";

// The packages' modules for `import` lack exports that they import from each other; those for
// `require` are whole, and all three must be of one kind to share one theme.
const whole = (name) => [name, `./node_modules/${name}/dist/cjs/index.cjs`];

await build({
  entryPoints: ["main.jsx"],
  outfile: "built/main.js",
  bundle: true,
  minify: true,
  format: "esm",
  jsx: "automatic",
  alias: Object.fromEntries(["@grafana/data", "@grafana/schema", "@grafana/ui"].map(whole)),
  define: { "process.env.NODE_ENV": '"production"', global: "globalThis" },
  loader: { ".svg": "dataurl", ".ttf": "dataurl", ".woff2": "dataurl" },
  logLevel: "error",
});
