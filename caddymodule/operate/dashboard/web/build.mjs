// Builds dist from src: `npm ci && npm run build`. The result is committed, and
// TestBrowserDashboardIsBuilt compares it with what this makes.
import { build } from 'esbuild'
import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { argv } from 'node:process'

const out = argv[2] ?? 'dist'
await rm(out, { recursive: true, force: true })
await mkdir(out, { recursive: true })
const { outputFiles } = await build({
  entryPoints: { app: 'src/main.js', style: 'src/style.css' },
  outdir: 'dist', // wherever the files go: the source maps name the sources from here
  write: false,
  bundle: true,
  minifyWhitespace: true, // names stay as they are: a test reads the words in them
  minifySyntax: true,
  sourcemap: true,
  format: 'esm',
  target: 'es2022',
  legalComments: 'inline',
  logLevel: 'warning',
})
for (const file of outputFiles) await writeFile(`${out}/${basename(file.path)}`, file.contents)
await copyFile('src/index.html', `${out}/index.html`)
