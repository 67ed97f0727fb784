import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Program, superviseChild } from '../../worker/local/children.ts'
import { describePostgres, describeTemporal } from '../../worker/local/programs.ts'
import { CACHE } from '../support/cache.ts'
import { createClient, type Send } from '../support/client.ts'
import type { Image } from './build.ts'
import { readCompose } from './compose.ts'
import { runRooted } from './rooted.ts'

// Runs in a network of its own: the ports are those of temporal-dev.yml, whatever listens on this machine.

const [described, folder] = process.argv.slice(2)
const image = JSON.parse(described!) as Image
const ADMIN = { email: 'admin@perdure.local', password: randomBytes(18).toString('base64url') }
const API = 'http://127.0.0.1:3000'
const say = (line: string) => console.log(`image: ${line}`)

execFileSync('ip', ['link', 'set', 'lo', 'up'])
const dataDir = join(folder!, 'data')
mkdirSync(dataDir, { mode: 0o711 })
const place = { dataDir, durable: false, say }
const launch = (program: Program) =>
  superviseChild(program, { started() {}, lost: (name, why) => say(`${name} ${why}`), back() {} }).ready
const { program: postgres, cluster } = await describePostgres({ ...place, port: 5432 })
const { program: temporal } = await describeTemporal({
  ...place,
  port: 7233,
  namespace: 'default',
  cache: CACHE,
  byHand: process.env.TEMPORAL_CLI,
})
await Promise.all([launch(postgres), launch(temporal)])
writeFileSync(join(image.root, 'etc/hosts'), '127.0.0.1 localhost postgres temporal\n')

const services = readCompose({
  PERDURE_KEYS: `k1:${randomBytes(32).toString('base64')}`,
  ADMIN_PASSWORD: ADMIN.password,
  POSTGRES_PASSWORD: new URL(cluster.url).password,
})

/** Starts a service as the file says: its command and variables, and what of the file system it may write to. */
function start(name: string) {
  const { command, environment, read_only: readOnly = false, tmpfs = [] } = services[name]!
  const env = { ...image.env, HOME: '/home/node', ...environment }
  return runRooted({ ...image, env, readOnly, tmpfs }, command!)
}

const migration = start('migrate')
if ((await migration.ended) !== 0) throw new Error(`the migration failed:\n${migration.output()}`)
const running = { api: start('api'), worker: start('worker') }

async function until(holds: () => Promise<boolean>, what: string): Promise<void> {
  for (const giveUp = Date.now() + 90_000; ; await sleep(100)) {
    if (await holds().catch(() => false)) return
    for (const [name, process] of Object.entries(running)) {
      if (process.hasEnded() || Date.now() > giveUp)
        throw new Error(`${what}: not so, the ${name} says:\n${process.output().slice(-4_000)}`)
    }
  }
}

await until(async () => (await fetch(`${API}/readyz`)).ok, 'the API is ready')
say('the API is ready')

const page = await fetch(API)
const script = /src="\.\/(console\/[^"]+\.js)"/.exec(await page.text())?.[1]
const code = await fetch(`${API}/${script}`)
if (!page.ok || !code.ok || (await code.text()).length < 10_000)
  throw new Error(`the console answers ${page.status}, its script ${script} ${code.status}`)
say('the console is served')

const signedIn = await fetch(`${API}/api/auth/login`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(ADMIN),
})
const cookie = signedIn.headers.getSetCookie()[0]?.split(';')[0] ?? ''
const send: Send = (path, { method, json, headers }) =>
  fetch(API + path, {
    method,
    headers: { cookie, 'content-type': 'application/json', ...headers },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  })
const made = await send('/api/teams', { method: 'POST', json: { name: 'Image' }, headers: {} })
const { id: teamId } = (await made.json()) as { id: string }
const client = createClient({ send, teamId })
// An expression and code each run in a process of their own, which starts from the image too.
const nodes = [
  { id: 'start', type: 'MANUAL_TRIGGER' },
  { id: 'set', type: 'SET', config: { values: { sum: '{{ $sum([1..$input.n].($ * $)) }}' } } },
  { id: 'code', type: 'CODE', config: { code: 'return {sum: $input.sum + 1}' } },
]
const edges = [
  { source: 'start', target: 'set' },
  { source: 'set', target: 'code' },
]
const workflow = await client.create({ nodes, edges })
const ran = await client.ask<{ status: string; outputData: { sum: number } }>(
  'POST',
  `/api/workflows/${workflow}/execute?waitMs=30000`,
  { teamId, data: { n: 3 } },
)
if (ran.status !== 'SUCCESS' || ran.outputData.sum !== 15)
  throw new Error(`an execution ended with ${JSON.stringify(ran)}:\n${running.worker.output().slice(-4_000)}`)
say('an execution ended with SUCCESS')

// A clone on a read-only file system has no console, and whoever starts it may not write to it.
rmSync(join(image.root, image.cwd, 'api/console/dist'), { recursive: true })
const SCRIPT = `import('./api/consolebuild.ts').then(async ({ buildConsole }) => {
  const { folder, release } = await buildConsole()
  const page = fs.readFileSync(folder + '/index.html', 'utf8')
  await release()
  console.log(folder.startsWith('/tmp/') && page.includes('__NONCE__') && !fs.existsSync(folder) ? 'BUILT' : folder)
})`
const bare = { ...image, env: { ...image.env, HOME: '/home/node' }, readOnly: true, tmpfs: ['/tmp'] }
const built = runRooted(bare, ['node_modules/.bin/node', '-e', SCRIPT])
if ((await built.ended) !== 0 || !built.output().includes('BUILT'))
  throw new Error(`the console cannot be built where nothing may be written:\n${built.output()}`)
say('the console is built without writing to its folder')
process.exit(0)
