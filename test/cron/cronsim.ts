import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseCron } from '../../workflows/cron/cron.ts'
import { listInstants } from '../../workflows/cron/instants.ts'
import { listClockChanges } from '../../workflows/cron/zones.ts'
import { CACHE } from '../support/cache.ts'

// Compares when cron expressions are due with Python's cronsim, which has the rule of Debian's cron, too: 40 zones, around
// every change of their clocks from 2026 to 2036; days such as L and 1#2 over those years in UTC. It needs Python 3.9.

const VERSION = '2.8'
const DAY = 86_400
const FROM = Date.UTC(2026, 0)
const TO = Date.UTC(2037, 0)

/** cronsim is wrong in the second passes of these zones, whose clocks change by half an hour or at a quarter to three. */
const WRONG_IN_SECOND_PASSES = ['Australia/Lord_Howe', 'Pacific/Chatham']

const ZONES =
  `UTC Europe/Berlin Europe/London Europe/Lisbon Europe/Dublin Europe/Moscow Europe/Istanbul Europe/Chisinau
  Atlantic/Azores America/New_York America/Chicago America/Denver America/Los_Angeles America/Phoenix America/St_Johns
  America/Havana America/Santiago America/Asuncion America/Sao_Paulo America/Nuuk America/Scoresbysund America/Miquelon
  America/Port-au-Prince Africa/Cairo Africa/Casablanca Africa/El_Aaiun Asia/Beirut Asia/Jerusalem Asia/Gaza Asia/Tehran
  Asia/Kolkata Asia/Kathmandu Australia/Sydney Australia/Adelaide Australia/Lord_Howe Pacific/Auckland Pacific/Chatham
  Pacific/Easter Pacific/Norfolk Antarctica/Troll`.split(/\s+/)

const AROUND_CHANGES = [
  '30 1 * * *',
  '30 2 * * *',
  '0,30 2 * * *',
  '15,45 0-3 * * *',
  '0 0 * * *',
  '30 0 * * *',
  '59 23 * * *',
  '0 23,0,1 * * *',
  '45 2,3 * * 0',
  '0 3 * * *',
  '5 1-5/2 * * 6,7',
  '0-59/7 1-3 * * *',
  '30 2 1-15 * 5',
  '*/15 * * * *',
  '*/30 2 * * *',
  '* 1 * * *',
  '0 * * * *',
  '20,40 * * * *',
  '30 */2 * * *',
  '*/20 0-2 * 3,4,9-11 *',
]
const DAYS = [
  '0 9 L * *',
  '0 9 LW * *',
  '0 9 * * 5L',
  '0 9 * * 1#2',
  '0 9 * * 7L',
  '0 9 1,L * *',
  '0 9 * 2 3#5',
]

type Plan = [cron: string, zone: string, from: number, to: number, change: number[] | null]

const venv = join(CACHE, `cronsim-${VERSION}`)
if (!existsSync(join(venv, 'bin', 'pip'))) execFileSync('python3', ['-m', 'venv', venv])
execFileSync(join(venv, 'bin', 'pip'), [
  ...['install', '--quiet', '--disable-pip-version-check'],
  ...[`cronsim==${VERSION}`, 'tzdata'],
])

const plans: Plan[] = ZONES.flatMap((zone) =>
  listClockChanges(zone, FROM, TO).flatMap(({ at, before, after }) => {
    const start = Math.floor(at / 1_000 / DAY) * DAY - DAY
    return AROUND_CHANGES.map(
      (cron) =>
        [...[cron, zone, start, start + 4 * DAY], [at, before, after].map((ms) => ms / 1_000)] as Plan,
    )
  }),
)
plans.push(...DAYS.map((cron): Plan => [cron, 'UTC', FROM / 1_000, TO / 1_000, null]))

const python = join(venv, 'bin', 'python')
const script = fileURLToPath(new URL('./oracle.py', import.meta.url))
const input = JSON.stringify(plans)
const theirs: (number[] | null)[] = JSON.parse(
  execFileSync(python, [script], {
    input,
    encoding: 'utf8',
    maxBuffer: 1024 ** 3,
    // The rules of the package tzdata, not the older ones of this machine.
    env: { ...process.env, PYTHONTZPATH: '' },
  }),
)
let differing = 0
let known = 0
const otherClocks = new Set<string>()
for (const [i, [text, zone, from, to]] of plans.entries()) {
  const expected = theirs[i]
  if (!expected) {
    otherClocks.add(zone)
    continue
  }
  const { cron, problems } = parseCron(text)
  if (problems.length > 0) throw new Error(`${text}: ${problems}`)
  const ours = listInstants({ cron, timezone: zone }, from * 1_000, to * 1_000).map((at) => at / 1_000)
  if (JSON.stringify(ours) === JSON.stringify(expected)) continue
  if (WRONG_IN_SECOND_PASSES.includes(zone) && cron.passes === 'every') {
    known++
    continue
  }
  if (++differing > 20) continue
  const show = (list: number[], other: number[]) =>
    list.filter((at) => !other.includes(at)).map((at) => new Date(at * 1_000).toISOString())
  console.log(`${text} in ${zone}: only ours`, show(ours, expected), 'only theirs', show(expected, ours))
}
console.log(
  `${plans.length} plans, ${differing} differ; ${known} differ where cronsim is known to be wrong (${WRONG_IN_SECOND_PASSES.join(', ')})`,
)
if (otherClocks.size > 0)
  console.log(`Not compared where the time zones of Node and Python differ: ${[...otherClocks]}`)
process.exitCode = differing > 0 ? 1 : 0
