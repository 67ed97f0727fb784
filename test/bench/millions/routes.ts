import type { ApiDocument } from '../../../api/docs/openapi.ts'
import type { FindId } from './ids.ts'

/** A request that is measured: `route` is its path in the document, `variant` what it filters by. */
export type Asked = { route: string; variant: string; path: string; stream: boolean }

/** What is no reading of rows: calls of the outside world, pages of others, waits for what comes, and whole chains. */
const LEFT_OUT = [
  /^\/(hooks|hooks-test|widget|mail)\//,
  /^\/api\/(public|oauth2|docs)\b/,
  /^\/api\/openapi\.json$/,
  /\/(events|stream|listening)$/,
  /\/verify$/,
]

type Parameter = {
  name: string
  in: string
  required?: boolean
  schema?: { enum?: (string | number)[]; type?: string; maximum?: number; default?: unknown }
}

/**
 * All requests for the GET routes of the document as a team's ADMIN makes them: each without filters, and with each filter by
 * itself. Routes whose ids are not to be found come as `missing`.
 */
export async function listAsked(
  document: ApiDocument,
  find: FindId,
  end: Date,
): Promise<{ asked: Asked[]; missing: string[] }> {
  const asked: Asked[] = []
  const missing: string[] = []
  for (const [route, { get }] of Object.entries(document.paths)) {
    if (!get || LEFT_OUT.some((pattern) => pattern.test(route))) continue
    const parameters = (get.parameters ?? []) as unknown as Parameter[]
    const path = await fillPath(route, find)
    const needed = new URLSearchParams()
    for (const { name, required, in: place } of parameters) {
      if (!required || place !== 'query') continue
      const value = await find(name)
      if (value !== undefined) needed.set(name, value)
    }
    const isWhole = parameters.every(
      ({ name, required, in: place }) => !required || place !== 'query' || needed.has(name),
    )
    if (path === undefined || !isWhole) {
      missing.push(route)
      continue
    }
    const stream = /\/(export|siem|download)$/.test(route)
    const add = (variant: string, query: Record<string, string>) => {
      const all = new URLSearchParams({ ...Object.fromEntries(needed), ...query })
      asked.push({ route, variant, path: all.size > 0 ? `${path}?${all}` : path, stream })
    }
    add('', {})
    const optional = parameters.filter((one) => one.in === 'query' && !one.required)
    for (const query of await listFilters(optional, find, end))
      add(
        Object.entries(query)
          .map(([name, value]) =>
            name === 'from' || name === 'to' ? name : /Id$/.test(name) ? name : `${name}=${value}`,
          )
          .join(' '),
        query,
      )
  }
  return { asked, missing }
}

async function fillPath(route: string, find: FindId): Promise<string | undefined> {
  let [filled, known, outer]: [string, string, string | undefined] = ['', '', undefined]
  for (const part of route.split('/').slice(1)) {
    known += `/${part}`
    const name = /^\{(\w+)\}$/.exec(part)?.[1]
    const value: string | undefined = name === undefined ? part : await find(name, known, outer)
    if (value === undefined) return undefined
    if (name !== undefined) outer = value
    filled += `/${encodeURIComponent(value)}`
  }
  return filled
}

const MOST_VALUES = 5
const DAY_MS = 86_400_000

/** A word of every row, one of a few, one of a single old row, and one of none. */
const WORDS = ['example.com', 'customer4242', 'A-00000007', 'zzyzx quux']

async function listFilters(
  parameters: Parameter[],
  find: FindId,
  end: Date,
): Promise<Record<string, string>[]> {
  const filters: Record<string, string>[] = []
  const ago = (days: number) => new Date(end.getTime() - days * DAY_MS).toISOString()
  const names = new Set(parameters.map(({ name }) => name))
  for (const { name, schema } of parameters) {
    if (name === 'page' || name === 'waitMs' || name === 'Prefer') continue
    if (name === 'search') filters.push(...WORDS.map((search) => ({ search })))
    else if (name === 'size') filters.push({ size: String(schema?.maximum ?? 100) })
    else if (name === 'from' && schema?.type === 'string')
      filters.push({ from: ago(1.3) }, { from: ago(12.3) })
    else if (name === 'to' && schema?.type === 'string') {
      filters.push({ to: ago(12.3) })
      if (names.has('from')) filters.push({ from: ago(20.3), to: ago(5.3) })
    } else if (name === 'action')
      filters.push({ action: 'WORKFLOW_UPDATED' }, { action: 'TEAM_PLAN_CHANGED' })
    else if (schema?.enum)
      filters.push(...schema.enum.slice(0, MOST_VALUES).map((value) => ({ [name]: String(value) })))
    else if (schema?.type === 'boolean') filters.push({ [name]: 'true' })
    else {
      const value = await find(name)
      if (value !== undefined) filters.push({ [name]: value })
    }
  }
  if (names.has('workflowId') && names.has('status')) {
    const workflowId = await find('workflowId')
    if (workflowId !== undefined) filters.push({ workflowId, status: 'FAILED' })
  }
  return filters
}
