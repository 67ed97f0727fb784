#!/usr/bin/env node
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

// `npx perdure` runs worker/cli.ts on the Node in node_modules, whatever Node runs this file. Like npm's
// scripts it runs in the project's folder, so that a relative DATA_DIR means the same folder to both.
const root = fileURLToPath(new URL('..', import.meta.url))
const node = fileURLToPath(new URL('../node_modules/.bin/node', import.meta.url))
const args = ['--disable-warning=ExperimentalWarning', 'worker/cli.ts', ...process.argv.slice(2)]
const child = spawn(node, args, { cwd: root, stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
child.once('error', (error) => {
  console.error(`perdure cannot start ${node}: ${error.message}. Run \`npm ci\` first.`)
  process.exitCode = 1
})
child.once('exit', (code) => {
  process.exitCode = code ?? 1
})
