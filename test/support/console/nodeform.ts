import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { build } from 'vite'

const CONSOLE = fileURLToPath(new URL('../../../api/console/', import.meta.url))
const ENTRY = `${CONSOLE}nodeform-alone.tsx`

/** The panel alone, as an editor would use it: it holds the node, and shows what the panel made of it. */
const PAGE = `
import { CSPProvider } from '@base-ui/react/csp-provider'
import { QueryClientProvider } from '@tanstack/react-query'
import { useState } from 'react'
import { createRoot } from 'react-dom/client'
import './tokens.css'
import './base.css'
import { queries } from './data/client.ts'
import { readNonce } from './data/nonce.ts'
import { ConfirmProvider } from './kit/overlays/confirm.tsx'
import { Notices } from './kit/notices.tsx'
import { NodePanel } from './nodeform/panel.tsx'
import { TeamContext } from './shell/role.tsx'

const { graph, nodeId, role, width, ...given } = window.given

function Editor() {
  const [nodes, setNodes] = useState(graph.nodes)
  const [id, setId] = useState(nodeId)
  const [closed, setClosed] = useState(false)
  const node = nodes.find((one) => one.id === id)
  window.node = node
  window.nodes = nodes
  const edit = (make) => setNodes((now) => now.map((one) => (one.id === id ? make(one) : one)))
  const rename = (next) => {
    edit((now) => ({ ...now, id: next }))
    setId(next)
  }
  // Another node is opened by the test.
  window.showNode = setId
  if (closed) return <p>Closed</p>
  return (
    <div style={{ width, height: '100vh' }}>
      <NodePanel {...given} node={node} graph={{ nodes, edges: graph.edges }} onEdit={edit} onRename={rename} onClose={() => setClosed(true)} />
    </div>
  )
}

createRoot(document.getElementById('app')).render(
  <CSPProvider nonce={readNonce()}>
    <QueryClientProvider client={queries}>
      <ConfirmProvider>
        <TeamContext value={{ teamId: given.teamId, teamName: 'Team', role, user: { teams: [] } }}>
          <main><h1 className="hidden">A node</h1><Editor /></main>
        </TeamContext>
      </ConfirmProvider>
      <Notices />
    </QueryClientProvider>
  </CSPProvider>,
)
`

const HTML = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A node</title>
<meta property="csp-nonce" nonce="__NONCE__"><meta name="viewport" content="width=device-width">
<link rel="stylesheet" href="./nodeform/style.css"></head>
<body><div id="app"></div><script type="module" src="./nodeform/main.js"></script></body></html>`

/** Builds that page, in memory: a page of the tests is no part of the console. */
export async function buildNodeForm(): Promise<Map<string, string>> {
  const made = await build({
    configFile: false,
    root: CONSOLE,
    base: './',
    publicDir: false,
    logLevel: 'error',
    mode: 'production',
    plugins: [
      {
        name: 'alone',
        resolveId: (id) => (id === ENTRY ? id : null),
        load: (id) => (id === ENTRY ? PAGE : null),
      },
    ],
    build: {
      write: false,
      minify: false,
      cssCodeSplit: false,
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      target: 'es2023',
      rolldownOptions: {
        input: ENTRY,
        output: {
          entryFileNames: 'main.js',
          chunkFileNames: '[name]-[hash].js',
          assetFileNames: '[name][extname]',
        },
      },
    },
  })
  const { output } = made as unknown as {
    output: { fileName: string; code?: string; source?: string | Uint8Array }[]
  }
  return new Map(output.map((one) => [one.fileName, one.code ?? String(one.source)]))
}

/** What stands in the page: the panel's properties, and how wide it is. */
export type Alone = {
  teamId: string
  workflowId: string | undefined
  graph: { nodes: object[]; edges: object[] }
  nodeId: string
  faults: { path: string; message: string; warning?: true }[]
  readOnly: boolean
  role: string
  width: number
}

/** Shows the panel on a page of the service's own origin, under the policy of the console. */
export async function showNodeForm(page: Page, origin: string, files: Map<string, string>, given: Alone) {
  const { headers } = await fetch(`${origin}/`)
  const policy = headers.get('content-security-policy')!
  const nonce = /nonce-([\w-]+)/.exec(policy)![1]!
  await page.route(`${origin}/nodeform.html`, (route) =>
    route.fulfill({
      contentType: 'text/html',
      headers: { 'content-security-policy': policy },
      body: HTML.replaceAll('__NONCE__', nonce),
    }),
  )
  await page.route(`${origin}/nodeform/**`, (route) => {
    const name = new URL(route.request().url()).pathname.split('/').at(-1)!
    const body = files.get(name)
    const contentType = extname(name) === '.css' ? 'text/css' : 'text/javascript'
    return body === undefined ? route.fulfill({ status: 404 }) : route.fulfill({ contentType, body })
  })
  await page.addInitScript((value) => Reflect.set(globalThis, 'given', value), given)
  await page.goto(`${origin}/nodeform.html`)
}
