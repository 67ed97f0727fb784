import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Fault } from '../../db/fault.ts'
import { readMemberships, type TeamPlan } from '../../db/people/teams.ts'
import { createToken } from '../../db/people/tokens.ts'
import { createFirstAdmin, hasUsers, nameOf, verifyPassword } from '../../db/people/users.ts'
import { type Scope, type Store, serviceScope } from '../../db/scope.ts'
import { createWorkflow, listWorkflows } from '../../db/workflows/workflows.ts'
import type { Config } from '../config.ts'

export type SignIn = { email: string; password: string; madeUp: boolean }

export type Welcome = {
  /** The first admin; null after the first start. */
  signIn: SignIn | null
  /** The seeded workflow; null if the data folder has no record of one. */
  example: Example | null
}

type Example = { workflowId: string; teamId: string }

const GRAPH = {
  name: 'Example: sort an order',
  description: 'Created at the first start. Execute it with an amount as data, such as {"amount": 120}.',
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER', position: { x: 0, y: 0 }, config: {} },
    {
      id: 'order',
      type: 'SET',
      name: 'Read the order',
      position: { x: 260, y: 0 },
      config: {
        values: { amount: '{{ $number($input.amount) }}', tax: '{{ $round($input.amount * 0.2, 2) }}' },
      },
    },
    {
      id: 'large',
      type: 'IF_ELSE',
      name: 'Is it large?',
      position: { x: 520, y: 0 },
      config: { condition: '$input.amount >= 100' },
    },
    {
      id: 'review',
      type: 'SET',
      name: 'Large: review it',
      position: { x: 780, y: -80 },
      config: { values: { decision: 'review', total: '{{ $input.amount + $input.tax }}' } },
    },
    {
      id: 'accept',
      type: 'SET',
      name: 'Small: accept it',
      position: { x: 780, y: 80 },
      config: { values: { decision: 'accept', total: '{{ $input.amount + $input.tax }}' } },
    },
  ],
  edges: [
    { source: 'start', target: 'order' },
    { source: 'order', target: 'large' },
    { source: 'large', target: 'review', sourceHandle: 'true' },
    { source: 'large', target: 'accept', sourceHandle: 'false' },
  ],
}

/**
 * At the first start, creates the admin, the team "Default", the example workflow, and the BUILDER token that
 * the printed lines and the guide use (in the data folder, mode 0600; an existing one is kept). If a first
 * start is cut short, the next one resumes it: the sign-in is stored before anything is created, and deleted
 * once `printWelcome` has shown it.
 */
export async function seedInstallation(
  store: Store,
  config: Pick<Config, 'admin' | 'dataDir' | 'defaultPlan'>,
): Promise<Welcome> {
  const { dataDir } = config
  const note = join(dataDir, 'first-sign-in.json')
  const signIn = readNote<SignIn>(note) ?? ((await hasUsers(store.db)) ? null : chooseSignIn(config.admin))
  const example = readNote<Example>(join(dataDir, 'example.json'))
  if (!signIn) return { signIn, example }
  writeNote(note, signIn)
  const scope = await openScope(store, signIn, config.defaultPlan)
  if (!scope) {
    rmSync(note)
    return { signIn: null, example }
  }
  return { signIn, example: example ?? (await makeExample(scope, dataDir)) }
}

/** Creates only the first admin, for `npx perdure migrate`. Null if there are users already. */
export async function seedAdmin(
  store: Store,
  config: Pick<Config, 'admin' | 'defaultPlan'>,
): Promise<SignIn | null> {
  const signIn = chooseSignIn(config.admin)
  return (await createFirst(store, signIn, config.defaultPlan)) ? signIn : null
}

/**
 * Prints what a newcomer needs next: the console, how to sign in, the documentation, the team, two lines to copy,
 * and what is `open`.
 */
export function printWelcome(welcome: Welcome, url: string, dataDir: string, open: string[]): void {
  const { signIn, example } = welcome
  const token = join(dataDir, 'token')
  const perdure = `${dataDir === resolve('.perdure') ? '' : `DATA_DIR=${quoteShell(dataDir)} `}npx perdure`
  const lines = ['', `Perdure is up: ${url}`, '', `  Console:   ${url}  (open it in a browser)`]
  if (signIn) {
    const password = signIn.madeUp ? `${signIn.password}  (shown only once)` : 'the value of ADMIN_PASSWORD'
    lines.push(`  E-mail:    ${signIn.email}`, `  Password:  ${password}`)
  } else {
    lines.push(
      '  Sign in:   with the e-mail and password shown at the first start',
      `             (if the password is lost: ${perdure} user passwd <e-mail>)`,
    )
  }
  lines.push(
    `  Guide:     ${url}/api/docs/guide`,
    `  API docs:  ${url}/api/docs`,
    existsSync(token)
      ? `  SDK token: ${token}  (to create another: ${perdure} token create)`
      : `  SDK token: none in ${dataDir}  (to create one: ${perdure} token create > ${quoteShell(token)})`,
  )
  if (example) lines.push(`  Team ID:   ${example.teamId}  (the "teamId" of requests)`)
  for (const [at, opening] of open.entries())
    lines.push(`${at === 0 ? '  Open:      ' : ' '.repeat(13)}${opening}`)
  if (example && existsSync(token)) {
    const body = JSON.stringify({ teamId: example.teamId, data: { amount: 120 } })
    const last = quoteShell(join(dataDir, 'last-execution.json'))
    const auth = `-H "Authorization: Bearer $(cat ${quoteShell(token)})"`
    lines.push(
      '',
      'Try it: execute the example workflow with the SDK token, then wait for its end (the console shows it too):',
      `curl -sS -X POST ${url}/api/workflows/${example.workflowId}/execute ${auth} -H 'Content-Type: application/json' -d '${body}' | tee ${last}`,
      `curl -sS ${auth} "${url}/api/executions/$(sed 's/.*"executionId":"\\([^"]*\\)".*/\\1/' ${last})?waitMs=30000"`,
    )
  }
  console.log(`${lines.join('\n')}\n`)
  rmSync(join(dataDir, 'first-sign-in.json'), { force: true })
}

async function makeExample(scope: Scope, dataDir: string): Promise<Example> {
  const teamId = [...scope.roles.keys()][0]!
  const file = join(dataDir, 'token')
  if (!existsSync(file)) {
    const { token } = await createToken(scope, teamId, { name: 'start', role: 'BUILDER' })
    writeFileSync(`${file}.new`, token, { mode: 0o600, flush: true })
    renameSync(`${file}.new`, file)
  }
  const example = { workflowId: await createOnce(scope, teamId), teamId }
  writeNote(join(dataDir, 'example.json'), example)
  return example
}

async function createOnce(scope: Scope, teamId: string): Promise<string> {
  try {
    return (await createWorkflow(scope, { teamId, ...GRAPH })).id
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'CONFLICT') throw error
    // A first start that was cut short created it, but did not store its id.
    const { content } = await listWorkflows(scope, { teamId, search: GRAPH.name, page: 0, size: 1 })
    if (!content[0]) throw error
    return content[0].id
  }
}

async function openScope(store: Store, signIn: SignIn, plan: TeamPlan): Promise<Scope | null> {
  const user =
    (await createFirst(store, signIn, plan)) ?? (await verifyPassword(store, signIn.email, signIn.password))
  if (!user) return null
  const teams = await readMemberships(store, user.id)
  if (teams.length === 0) return null
  const actor = { kind: 'USER', id: user.id, name: nameOf(user) } as const
  const roles = teams.map(({ teamId, role }) => [teamId, role] as const)
  return serviceScope(store, actor, roles, { userId: user.id, instanceAdmin: true })
}

async function createFirst(store: Store, { email, password }: SignIn, plan: TeamPlan) {
  const name = { firstName: 'First', lastName: 'Admin' }
  const made = await createFirstAdmin(store, { ...name, email, password, teamName: 'Default', plan })
  return made?.user ?? null
}

function chooseSignIn(admin: Config['admin']): SignIn {
  return {
    email: admin.email ?? 'admin@perdure.local',
    password: admin.password ?? randomBytes(12).toString('base64url'),
    madeUp: admin.password === undefined,
  }
}

function readNote<T>(path: string): T | null {
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as T) : null
}

function writeNote(path: string, value: unknown): void {
  writeFileSync(path, `${JSON.stringify(value)}\n`, { mode: 0o600, flush: true })
}

function quoteShell(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`
}
