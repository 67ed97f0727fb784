import type { Context } from 'hono'
import * as v from 'valibot'
import { invalid } from '../../db/fault.ts'
import { findMisspeltKeys, findUnknownKeys } from '../../workflows/graph/advice/unknown.ts'
import { joinPath, type Problem } from '../../workflows/problem.ts'
import type { AppEnv } from '../env.ts'
import { warnUnknownKeys } from '../warnings.ts'

/** The query parameter of routes that save a graph. */
export const unknownKeysQuery = {
  unknownKeys: v.pipe(
    v.optional(v.picklist(['warn', 'refuse'], 'must be warn or refuse'), 'warn'),
    v.description('Whether keys that nothing reads become warnings, or are refused with 400'),
  ),
}

/** For the descriptions of those routes. */
export const ABOUT_UNKNOWN_KEYS =
  "Keys of a config that the node's type does not know are left out, and are named in `warnings`, unless " +
  '`unknownKeys=refuse` refuses them; those of WEBHOOK_TRIGGER, FORM_TRIGGER, FORM, CHAT_TRIGGER, MCP_TRIGGER, APPROVAL, GUARDRAIL and AI_AGENT are ' +
  'always refused. The X-Unknown-Fields header lists their paths as a JSON array, too. `warnings` ' +
  'also has what in the graph is valid but may be a mistake.'

const MAX_LISTED = 10
const MAX_PATH_CHARACTERS = 100

/** The keys of a request that nothing reads: keys of configs, and others. */
export type UnknownKeys = { ofConfigs: Problem[]; others: Problem[] }

/**
 * Finds the keys that nothing reads in a body and in its graph, at `path` of it. Throws INVALID with all of them if
 * the request wants them refused. `also` are keys that the body may have without being read.
 */
export function findUnread(
  c: Context<AppEnv>,
  graph: { nodes?: unknown; edges?: unknown },
  { path = '', also = [] }: { path?: string; also?: string[] } = {},
): UnknownKeys {
  const place = (problem: Problem) => ({
    ...problem,
    path: path === '' ? problem.path : joinPath(path, problem.path),
  })
  const [nodes, edges] = [graph.nodes, graph.edges].map((list) => (Array.isArray(list) ? list : []))
  const ofConfigs = findUnknownKeys(nodes).map(place)
  const others = [...warnUnknownKeys(c, {}, also), ...findMisspeltKeys(nodes!, edges!).map(place)]
  const all = [...ofConfigs, ...others]
  if (c.req.query('unknownKeys') === 'refuse' && all.length > 0) {
    const refuse = (text: string) => text.replace(/ and was (?:left out|not read)/, '')
    throw invalid(all.map(({ message, ...rest }) => ({ ...rest, message: refuse(message) })))
  }
  return { ofConfigs, others }
}

/**
 * Lists in the X-Unknown-Fields header the paths of config keys that the node's type does not know, at most 10.
 * Returns all warnings of a response.
 */
export function tellUnread(
  c: Context<AppEnv>,
  { ofConfigs, others }: UnknownKeys,
  more: Problem[],
): Problem[] {
  nameUnknownFields(
    c,
    ofConfigs.map(({ path }) => path),
  )
  return [...ofConfigs, ...others, ...more].slice(0, MAX_WARNINGS)
}

/** Lists in the X-Unknown-Fields header the paths, at most 10, of what a request has and nothing reads. */
export function nameUnknownFields(c: Context<AppEnv>, paths: string[]): void {
  const encode = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  const cut = paths.slice(0, MAX_LISTED).map((path) => path.slice(0, MAX_PATH_CHARACTERS))
  if (cut.length > 0) c.header('X-Unknown-Fields', JSON.stringify(cut).replace(/[^ -~]/g, encode))
}

const MAX_WARNINGS = 100
