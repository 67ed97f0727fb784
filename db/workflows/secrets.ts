import { splitTemplate } from '../../workflows/expressions/expressions.ts'
import type { GraphNode } from '../../workflows/graph/graph.ts'
import {
  HIDDEN,
  listMoved,
  listSecrets,
  moveSecret,
  replaceSecret,
  valueAt,
} from '../../workflows/graph/secrets.ts'
import { getOwn, isObject } from '../../workflows/json.ts'
import { joinPath, type Path, type Problem } from '../../workflows/problem.ts'
import { REDACTED } from '../detection/secrets/structures.ts'
import { redact } from '../redaction/redact.ts'
import { IN_REQUESTS, listHookSecrets } from '../redaction/requests.ts'

/** The keys of a config that may have a secret anywhere in their values, by node type: the redactor finds it. */
const CARRIERS: Record<string, string[]> = { HTTP_REQUEST: ['url', 'headers', 'query', 'body'] }

const hiddenOf = new WeakMap<GraphNode, GraphNode>()

/** A copy of the node with `[hidden]` in the place of its secrets, for those who may not set them. */
export function hideSecrets(node: GraphNode): GraphNode {
  const known = hiddenOf.get(node)
  if (known) return known
  const named = listSecrets(node).reduce((shown, path) => replaceSecret(shown, path, HIDDEN), node)
  const { body, ...rest } = pickCarried(node)
  const secrets = typeof rest.url === 'string' ? listHookSecrets(rest.url) : []
  const masked = {
    ...redact(rest, { rules: IN_REQUESTS, secrets }),
    ...redact(body === undefined ? {} : { body }),
  }
  const carried = body === undefined ? rest : { ...rest, body }
  const config = { ...named.config, ...(hideWithin(carried, masked) as typeof carried) }
  const hidden = { ...named, config }
  hiddenOf.set(node, hidden)
  return hidden
}

/**
 * A copy of the node for an export, and the paths of the secrets that it lacks (`config.secretHeader.value`).
 * What a webhook demands is left out, with the credential that has it, so that an import makes a new one; what a
 * request sends is `[hidden]`. Other credentials are named as they are: their ids are no secret.
 */
export function dropSecrets(node: GraphNode): { node: GraphNode; dropped: string[] } {
  const paths = listSecrets(node)
  const moved = listMoved(node).filter(({ path }) => !paths.includes(path))
  const all = [...paths, ...moved.map(({ path }) => path)]
  const rest = all.reduce((kept, path) => moveSecret(kept, path, undefined), hideSecrets(node))
  return { node: rest, dropped: [...all.map(namePath), ...listHidden(rest)] }
}

/** The paths of what a request sends and an export has hidden (`config.headers.Authorization`). */
export function listHidden(node: GraphNode): string[] {
  return findHidden(pickCarried(node)).map(namePath)
}

/**
 * Puts the stored secrets, or the credentials that have them, back where a program sends the `[hidden]` that it has
 * read. `problems` names every other `[hidden]` in the place of a secret, which would be stored as the secret itself.
 */
export function restoreSecrets(
  nodes: GraphNode[],
  stored: GraphNode[],
): { nodes: GraphNode[]; problems: Problem[] } {
  const problems: Problem[] = []
  const storedById = new Map(stored.map((node) => [node.id, node]))
  const restored = nodes.map((node, i) => {
    const named = listSecrets(node).filter((path) => valueAt(node.config, path) === HIDDEN)
    const found = [...named, ...findHidden(pickCarried(node))]
    if (found.length === 0) return node
    const old = storedById.get(node.id)
    const shown = old?.type === node.type ? hideSecrets(old) : undefined
    // A graph that was read before the secret was moved into a credential keeps the credential.
    const moved = shown ? listMoved(shown).filter(({ path }) => named.includes(path)) : []
    const paths = found.filter((path) => !moved.some((one) => one.path === path))
    const { config } = moved.reduce(
      (kept, { path, beside }) => moveSecret(kept, path, String(valueAt(shown!.config, beside))),
      { ...node, config: structuredClone(node.config) },
    )
    for (const path of paths) {
      const isSame = shown !== undefined && valueAt(shown.config, path) === valueAt(config, path)
      if (isSame) Object(valueAt(config, path.slice(0, -1)))[path.at(-1)!] = valueAt(old!.config, path)
      else {
        const message = `must be the secret itself: ${HIDDEN} only keeps a secret that this node has here`
        problems.push({ path: `nodes[${i}].${namePath(path)}`, message })
      }
    }
    return { ...node, config }
  })
  return { nodes: restored, problems }
}

function namePath(path: Path): string {
  return path.reduce<string>(joinPath, 'config')
}

function pickCarried({ type, config }: GraphNode): Record<string, unknown> {
  const keys = getOwn(CARRIERS, type) ?? []
  return Object.fromEntries(keys.filter((key) => Object.hasOwn(config, key)).map((key) => [key, config[key]]))
}

function findHidden(value: unknown, at: Path = []): Path[] {
  if (typeof value === 'string') return value.includes(HIDDEN) ? [at] : []
  if (Array.isArray(value)) return value.flatMap((item, i) => findHidden(item, [...at, i]))
  return Object.entries(Object(value)).flatMap(([key, item]) =>
    key.includes(HIDDEN) ? [[...at, key]] : findHidden(item, [...at, key]),
  )
}

/** A copy of the value with `[hidden]` wherever the redactor's copy of it, `masked`, differs. */
function hideWithin(value: unknown, masked: unknown): unknown {
  if (Array.isArray(value) && Array.isArray(masked) && value.length === masked.length)
    return value.map((item, i) => hideWithin(item, masked[i]))
  if (isObject(value) && isObject(masked)) {
    const copies = Object.entries(masked)
    const entries = Object.entries(value)
    if (copies.length !== entries.length) return HIDDEN
    return Object.fromEntries(
      entries.map(([, item], i) => [name(copies[i]![0]), hideWithin(item, copies[i]![1])]),
    )
  }
  if (value === masked || (typeof value === 'string' && isReference(value, masked))) return value
  return typeof masked === 'string' ? name(masked) : HIDDEN

  function name(text: string): string {
    return text.replaceAll(REDACTED, HIDDEN)
  }
}

/** The words that may precede a credential in a header. */
const SCHEME = /^\s*(?:bearer|basic|token|bot|apikey|key)?\s*$/i

/**
 * Whether the text only names where its secret comes from, as `Bearer {{ $vars.token }}` does. Variables are
 * no secret, and such a text must survive an export.
 */
function isReference(text: string, masked: unknown): boolean {
  let rest = ''
  try {
    // A text in JavaScript begins with `=`.
    for (const part of splitTemplate(text.replace(/^=/, ''))) {
      if (typeof part === 'string') rest += part
      else if (!/^\$[$\w.[\]]*$/.test(part.source)) return false
    }
  } catch {
    return false
  }
  if (rest === text) return false
  return masked === REDACTED ? SCHEME.test(rest) : redact(rest, { rules: IN_REQUESTS }) === rest
}
