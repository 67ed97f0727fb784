import { readAddress } from './address.js'
import { showApprovals } from './approvals.js'
import { isLeft, session } from './ask.js'
import { showConfirm } from './confirm.js'
import { showCredentials } from './credentials.js'
import { h } from './dom.js'
import { showEdit, showNew } from './editor.js'
import { showExecution } from './execution.js'
import { showExecutions } from './executions.js'
import { createFrame } from './frame.js'
import { describe } from './notices.js'
import { readUser, showSignIn } from './session.js'
import { showTokens } from './tokens.js'
import { showVersions } from './versions.js'
import { showWorkflow } from './workflow.js'
import { showWorkflows } from './workflows.js'

/**
 * What a page gets: where it draws, who looks at it, and a signal that ends with it.
 * @typedef {{ main: HTMLElement, id: string, query: URLSearchParams, signal: AbortSignal, frame: import('./frame.js').Frame }} Page
 */

/** @type {{ path: RegExp, nav: string, title: string, show: (page: Page) => Promise<void> }[]} */
const PAGES = [
  { path: /^\/workflows$/, nav: 'workflows', title: 'Workflows', show: showWorkflows },
  { path: /^\/workflows\/new$/, nav: 'workflows', title: 'New workflow', show: showNew },
  { path: /^\/workflows\/([\w-]+)$/, nav: 'workflows', title: 'Workflow', show: showWorkflow },
  { path: /^\/workflows\/([\w-]+)\/edit$/, nav: 'workflows', title: 'Edit workflow', show: showEdit },
  { path: /^\/workflows\/([\w-]+)\/versions$/, nav: 'workflows', title: 'Versions', show: showVersions },
  { path: /^\/executions$/, nav: 'executions', title: 'Executions', show: showExecutions },
  { path: /^\/executions\/([\w-]+)$/, nav: 'executions', title: 'Execution', show: showExecution },
  { path: /^\/approvals$/, nav: 'approvals', title: 'Approvals', show: showApprovals },
  { path: /^\/confirm$/, nav: '', title: 'Your e-mail', show: showConfirm },
  { path: /^\/credentials$/, nav: 'credentials', title: 'Credentials', show: showCredentials },
  { path: /^\/tokens$/, nav: 'tokens', title: 'SDK tokens', show: showTokens },
]

const app = /** @type {HTMLElement} */ (document.getElementById('app'))
/** @type {import('./frame.js').Frame | undefined} */
let frame
let left = new AbortController()
let over = new AbortController()

session.onEnd = signIn
addEventListener('hashchange', () => void showPage())
await begin()

async function begin() {
  try {
    const user = await readUser()
    if (!user) return signIn()
    over.abort()
    over = new AbortController()
    frame = createFrame(user, { signal: over.signal, onTeam: () => void showPage(), onSignOut: signIn })
    app.replaceChildren(...frame.elements)
    await showPage()
  } catch (error) {
    const again = h('button', { class: 'button', onclick: begin }, 'Try again')
    app.replaceChildren(h('main', { class: 'alone' }, describe(error), again))
  }
}

function signIn() {
  left.abort()
  over.abort()
  frame = undefined
  for (const dialog of document.querySelectorAll('dialog')) dialog.close()
  document.title = 'Sign in · Perdure'
  app.replaceChildren(showSignIn(() => void begin()))
  app.querySelector('input')?.focus()
}

/** Draws the page that the address names; whatever the one before was doing ends. */
async function showPage() {
  left.abort()
  if (!frame) return
  left = new AbortController()
  const { signal } = left
  const { path, query } = readAddress()
  const page = PAGES.find((one) => one.path.test(path))
  if (!page) return location.replace('#/workflows')
  const { main } = frame
  document.title = `${page.title} · Perdure`
  frame.mark(page.nav)
  main.replaceChildren(h('div', { class: 'loading', role: 'status' }, 'Loading…'))
  const id = page.path.exec(path)?.[1] ?? ''
  try {
    await page.show({ main, id, query, signal, frame })
    if (signal.aborted) return
    // The page is announced by its heading, as a page load would be.
    main.querySelector('h1')?.focus({ preventScroll: true })
    scrollTo(0, 0)
  } catch (error) {
    if (!signal.aborted && !isLeft(error)) main.replaceChildren(describe(error))
  }
}
