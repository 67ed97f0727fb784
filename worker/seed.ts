import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Fault } from '../db/fault.ts'
import type { Scope, Store } from '../db/scope.ts'
import { type Plan, readMemberships } from '../db/teams.ts'
import { createToken } from '../db/tokens.ts'
import { createFirstAdmin, verifyPassword } from '../db/users.ts'
import { createWorkflow, listWorkflows } from '../db/workflows.ts'
import type { Config } from './config.ts'

export type SignIn = { email: string; password: string; madeUp: boolean }

export type Welcome = {
  /** Only at the first start. */
  signIn: SignIn | null
  /** The seeded workflow; null where the data folder knows of none. */
  example: Example | null
}

type Example = { workflowId: string; teamId: string }

const GRAPH = {
  name: 'Example: sort an order',
  description: 'Made at the first start. Its data is an amount, such as {"amount": 120}.',
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER', position: { x: 0, y: 0 }, config: {} },
    {
      id: 'order',
      type: 'SET',
      name: 'Read the order',
      position: { x: 200, y: 0 },
      config: {
        values: { amount: '{{ $number($input.amount) }}', tax: '{{ $round($input.amount * 0.2, 2) }}' },
      },
    },
    {
      id: 'large',
      type: 'IF_ELSE',
      name: 'Is it large?',
      position: { x: 400, y: 0 },
      config: { condition: '$input.amount >= 100' },
    },
    {
      id: 'review',
      type: 'SET',
      name: 'Large: review it',
      position: { x: 600, y: -80 },
      config: { values: { decision: 'review', total: '{{ $input.amount + $input.tax }}' } },
    },
    {
      id: 'accept',
      type: 'SET',
      name: 'Small: accept it',
      position: { x: 600, y: 80 },
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
 * At the first start makes the admin, the team "Default", the example workflow and an OPERATOR token for the printed
 * lines (kept in the data folder, mode 0600). A first start cut short is taken up where it was: the
 * sign-in is noted before anything is made, and forgotten once `printWelcome` has shown it.
 */
export async function seed(
  store: Store,
  config: Pick<Config, 'admin' | 'dataDir' | 'defaultPlan'>,
): Promise<Welcome> {
  const { dataDir } = config
  const note = join(dataDir, 'first-sign-in.json')
  const signIn = read<SignIn>(note) ?? ((await hasUsers(store)) ? null : chooseSignIn(config.admin))
  const example = read<Example>(join(dataDir, 'example.json'))
  if (!signIn) return { signIn, example }
  write(note, signIn)
  const scope = await openScope(store, signIn, config.defaultPlan)
  if (!scope) {
    rmSync(note)
    return { signIn: null, example }
  }
  return { signIn, example: example ?? (await makeExample(scope, dataDir)) }
}

/** Makes the first admin alone, for a cluster; null where there are users. Throws where its sign-in is not shown. */
export async function seedAdmin(
  store: Store,
  config: Pick<Config, 'admin' | 'defaultPlan'>,
): Promise<SignIn | null> {
  const signIn = chooseSignIn(config.admin)
  return (await createFirst(store, signIn, config.defaultPlan)) ? signIn : null
}

/** The end of the start: how to sign in, and two lines to copy. */
export function printWelcome(welcome: Welcome, url: string, dataDir: string): void {
  const { signIn, example } = welcome
  const lines = ['', `Perdure is up: ${url}`]
  if (signIn) {
    const password = signIn.madeUp ? `${signIn.password} (shown this once)` : 'that of ADMIN_PASSWORD'
    lines.push(`Sign in: POST ${url}/api/auth/login as ${signIn.email}, password ${password}`)
  } else
    lines.push(`Sign in: POST ${url}/api/auth/login with the e-mail and password shown at the first start`)
  if (example) {
    const body = JSON.stringify({ teamId: example.teamId, data: { amount: 120 } })
    const token = quote(join(dataDir, 'token'))
    const last = quote(join(dataDir, 'last-run.json'))
    const auth = `-H "Authorization: Bearer $(cat ${token})"`
    lines.push(
      '',
      'Execute the example workflow, then poll the run:',
      `curl -sS -X POST ${url}/api/workflows/${example.workflowId}/execute ${auth} -H 'Content-Type: application/json' -d '${body}' | tee ${last}`,
      `curl -sS ${auth} ${url}/api/executions/$(sed 's/.*"executionId":"\\([^"]*\\)".*/\\1/' ${last})`,
    )
  }
  console.log(`${lines.join('\n')}\n`)
  rmSync(join(dataDir, 'first-sign-in.json'), { force: true })
}

async function makeExample(scope: Scope, dataDir: string): Promise<Example> {
  const teamId = [...scope.roles.keys()][0]!
  const { token } = await createToken(scope, teamId, { name: 'example', role: 'OPERATOR' })
  writeFileSync(join(dataDir, 'token'), token, { mode: 0o600 })
  const example = { workflowId: await createOnce(scope, teamId), teamId }
  write(join(dataDir, 'example.json'), example)
  return example
}

async function createOnce(scope: Scope, teamId: string): Promise<string> {
  try {
    return (await createWorkflow(scope, { teamId, ...GRAPH })).id
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'CONFLICT') throw error
    // Made by a first start that was cut short before it noted the id.
    const { content } = await listWorkflows(scope, { teamId, search: GRAPH.name, page: 0, size: 1 })
    if (!content[0]) throw error
    return content[0].id
  }
}

async function openScope(store: Store, signIn: SignIn, plan: Plan): Promise<Scope | null> {
  const user =
    (await createFirst(store, signIn, plan)) ?? (await verifyPassword(store, signIn.email, signIn.password))
  if (!user) return null
  const teams = await readMemberships(store, user.id)
  if (teams.length === 0) return null
  return {
    store,
    actor: { kind: 'USER', id: user.id, name: signIn.email },
    userId: user.id,
    instanceAdmin: true,
    roles: new Map(teams.map(({ teamId, role }) => [teamId, role])),
    requestId: null,
    ip: null,
  }
}

async function createFirst(store: Store, { email, password }: SignIn, plan: Plan) {
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

async function hasUsers(store: Store): Promise<boolean> {
  return (await store.db.selectFrom('users').select('id').limit(1).executeTakeFirst()) !== undefined
}

function read<T>(path: string): T | null {
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as T) : null
}

function write(path: string, value: unknown): void {
  writeFileSync(path, `${JSON.stringify(value)}\n`, { mode: 0o600, flush: true })
}

function quote(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`
}
