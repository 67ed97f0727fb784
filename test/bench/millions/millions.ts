import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import pg from 'pg'
import type { ApiDocument } from '../../../api/docs/openapi.ts'
import type { Stand } from '../stand.ts'
import { createFinder } from './ids.ts'
import { type Measured, measureAll } from './measure.ts'
import { measureRetention } from './retention.ts'
import { listAsked } from './routes.ts'
import { seedMillions } from './seed.ts'

/**
 * Seeds a million executions, ten million node records, as many calls to models, and a million audit entries, all times a
 * scale; and asks every route that reads, as ADMIN of the huge team and of a small one, with each filter. `--compare FILE`
 * compares the answers with those that the file has, or writes them into it.
 */
export async function measureMillions(stand: Stand, args: string[]): Promise<void> {
  const at = args.indexOf('--compare')
  const file = at < 0 ? undefined : args[at + 1]
  const scale = Number(args[0] ?? 1)
  if (!(scale > 0)) throw new Error('The scale is a number, such as 0.1')
  const { small } = await seedMillions(stand, scale)
  await askAll(
    stand.url,
    stand.databaseUrl,
    { huge: await openTeam(stand), small: await openTeam(small) },
    file,
  )
  await measureRetention(stand, small)
}

type Team = { teamId: string; token: string }

async function openTeam({ teamId, ask }: Stand): Promise<Team> {
  const wanted = { name: 'reader', role: 'ADMIN' }
  const { token } = await ask<{ token: string }>('POST', `/api/teams/${teamId}/sdk-tokens`, wanted)
  return { teamId, token }
}

/** Measures all routes for each of the teams, and prints a table of those that are slow, and one of all. */
export async function askAll(
  url: string,
  databaseUrl: string,
  teams: Record<string, Team>,
  file?: string,
  only = /./,
): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    const document = (await (await fetch(`${url}/api/openapi.json`)).json()) as ApiDocument
    const { rows } = await client.query<{ end: Date }>('select max(created_at) as end from executions')
    const bodies: Record<string, string> = {}
    for (const [size, { teamId, token }] of Object.entries(teams)) {
      const { asked, missing } = await listAsked(document, createFinder(client, teamId), rows[0]!.end)
      const chosen = asked.filter((one) => only.test(`${one.route} ${one.variant}`))
      console.log(`\nThe ${size} team, p50 and p95 in ms; "calm" is /healthz beside it`)
      const measured = await measureAll(url, token, chosen, (one) => console.log(describe(one)))
      const over = measured.filter((one) => one.over)
      console.log(`${over.length} of ${measured.length} are over their bound`)
      for (const one of over) console.log(describe(one))
      console.log(`Not asked, for want of an id: ${missing.join(', ')}`)
      for (const one of measured) bodies[`${size} ${one.path}`] = one.body
    }
    if (file !== undefined) compare(file, bodies)
  } finally {
    await client.end()
  }
}

function describe({ route, variant, status, p50, p95, calm95, over, stream }: Measured): string {
  const time = (ms: number) => ms.toFixed(1).padStart(8)
  return `${over ? '!' : ' '} ${time(p50)} ${time(p95)}  calm ${calm95.toFixed(1).padStart(5)} ${status} ${route}${
    stream ? ' (first byte)' : ''
  } ${variant}`
}

function compare(file: string, bodies: Record<string, string>): void {
  if (!existsSync(file)) {
    writeFileSync(file, JSON.stringify(bodies))
    return
  }
  const before = JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>
  const changed = Object.keys(bodies).filter((key) => key in before && before[key] !== bodies[key])
  console.log(`\n${changed.length} of ${Object.keys(bodies).length} answers are not as in ${file}`)
  for (const key of changed)
    console.log(
      `${key}\n  before ${cut(before[key]!, bodies[key]!)}\n  now    ${cut(bodies[key]!, before[key]!)}`,
    )
}

/** Where one text begins to be another. */
function cut(text: string, other: string): string {
  let at = 0
  while (at < text.length && text[at] === other[at]) at++
  return text.slice(Math.max(0, at - 60), at + 100)
}
