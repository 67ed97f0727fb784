import type { GraphEdge } from '../graph.ts'
import { isDocument, readDocument, type SourceNode } from './document.ts'
import { type Drawn, drawEdges } from './edges.ts'
import { checkJoins } from './joins.ts'
import { arrange, type Layout } from './layout.ts'
import {
  type Built,
  type Mapped,
  type Mapper,
  mainOf,
  type NewNode,
  type Part,
  placeholder,
} from './mapper.ts'
import { findMapper } from './mappers.ts'
import { createNames } from './names.ts'
import type { Complain, ImportProblem, ImportReport } from './report.ts'
import { type MappedSettings, mapSettings } from './settings.ts'
import { createReader } from './values.ts'

export type Converted = {
  name: string | undefined
  nodes: NewNode[]
  edges: GraphEdge[]
  settings: MappedSettings
  report: ImportReport
}

const DAY_MS = 86_400_000

/**
 * A workflow of n8n's as one of ours, with a report of all that is not the same. What has no counterpart becomes a
 * node that stops the run. `findWorkflow` tells which workflow here stands for one of theirs. Undefined where `raw` is
 * no workflow of n8n's.
 */
export function convertWorkflow(
  raw: unknown,
  findWorkflow: (id: string) => string | undefined,
): Converted | undefined {
  if (!isDocument(raw)) return undefined
  const problems: ImportProblem[] = []
  const complainOf =
    (node: string | null): Complain =>
    (kind, path, message, original) =>
      void problems.push({ node, path, kind, message, original })
  const source = readDocument(raw, complainOf)
  const mappers = new Map(source.nodes.map((node) => [node.name, findMapper(node)]))
  const mapperOf = (node: SourceNode) => mappers.get(node.name)!
  const layout = arrange(source, mapperOf, complainOf)
  checkJoins(layout, mapperOf, complainOf)
  const ids = nameNodes(layout)
  const built = new Map<string, Built>()
  const edges = drawEdges({ layout, built, ids, mapperOf, complainOf })

  const build = (node: SourceNode) => {
    const id = ids.get(node.name)!
    const complain = complainOf(node.name)
    const mapped = mapNode(node, mapperOf(node), id, complain)
    const last = mapped.parts.at(-1)!
    built.set(node.name, {
      source: node,
      id,
      mapped,
      entry: id + mapped.parts[0]!.suffix,
      exit: id + last.suffix,
      handles: mapped.handles ?? [null],
    })
  }

  function mapNode(node: SourceNode, mapper: Mapper, id: string, complain: Complain): Mapped {
    const { input, unwrap } = layout.flowOf(node.name)
    const first = input.card === 'many' && (mapper.takes === 'any' || mapper.takes === 'item')
    const source = `$input${input.path}`
    const current = first ? `${source}[0]` : source
    const names = createNames({ layout, built, node, current, mapperOf })
    const outputs = Math.max(
      0,
      ...layout.links.filter(({ from }) => from === node.name).map(({ output }) => output + 1),
    )
    try {
      return mapper.map(node, {
        id,
        complain,
        reader: createReader(names, complain),
        each: createReader({ ...names, current: () => ({ text: '$item', hint: 'unknown' }) }, complain),
        input,
        source: first && mapper.takes === 'item' ? current : source,
        inputs: mapper.takes === 'merge' ? edges.readInputs(node.name) : [],
        unwrap,
        outputs,
        findWorkflow,
      })
    } catch (error) {
      const { message } = error as Error
      complain('node', 'parameters', `A node that stops the run is in its place: ${message}`, node.raw)
      return placeholder(node, message)
    }
  }

  // What merges read must be there before them, whatever the order of what else hangs on it.
  for (const node of layout.order) if (mapperOf(node).takes !== 'merge') build(node)
  for (const node of layout.order) if (mapperOf(node).takes === 'merge') build(node)

  const drawn: Drawn = edges.draw()
  const nodes = layout.order.flatMap((node) =>
    placeNode(built.get(node.name)!, layout, complainOf(node.name)),
  )
  const settings = mapSettings(source.settings, complainOf(null), findWorkflow)
  const mapped = layout.order.map((node) => {
    const { id, mapped } = built.get(node.name)!
    return { node: node.name, type: node.fullType, id, as: mainOf(mapped).type }
  })
  return {
    name: source.name,
    nodes: [...nodes, ...drawn.nodes],
    edges: drawn.edges,
    settings,
    report: { mapped, problems, stickyNotes: source.stickyNotes },
  }
}

/** Ids that read like the names, and stand in expressions without quotes; also of the loops that are made. */
function nameNodes({ order, loops }: Layout): Map<string, string> {
  const taken = new Set<string>()
  const take = (wanted: string) => {
    let id = wanted
    for (let i = 2; taken.has(id); i++) id = `${wanted}_${i}`
    taken.add(id)
    return id
  }
  const ids = new Map<string, string>()
  for (const { name } of order) {
    const plain = name
      .replace(/[^A-Za-z0-9]+/g, '_')
      .replace(/^_+|_+$/g, '')
      .slice(0, 60)
    ids.set(
      name,
      take(
        /^[A-Za-z]/.test(plain) && plain !== 'constructor' && plain !== 'prototype' ? plain : `node_${plain}`,
      ),
    )
  }
  for (const loop of loops)
    loop.id = loop.own ? ids.get(loop.source)! : take(`each_${ids.get([...loop.members][0]!)}`)
  return ids
}

/** Our nodes for one of theirs: in a row where theirs stood, with its retry and error settings on the main one. */
function placeNode(built: Built, layout: Layout, complain: Complain): NewNode[] {
  const { source, id, mapped } = built
  const { raw, position, name } = source
  const parentId = layout.loopOf(name)?.id
  return mapped.parts.map((part, i) => {
    const main = part === mainOf(mapped)
    return {
      id: id + part.suffix,
      type: part.type,
      name: main ? name.slice(0, 200) : `${name.slice(0, 150)} (${part.type.toLowerCase()})`,
      config: part.config,
      ...(position ? { position: { x: position.x + 40 * i, y: position.y + 60 * i } } : {}),
      ...(parentId ? { parentId } : {}),
      ...(source.disabled ? { disabled: true } : {}),
      ...(main ? readCare(part, raw, mapped.missing === true, complain) : {}),
    }
  })
}

/** Retries, errors, credentials and what else stands beside a node's parameters. */
function readCare(
  part: Part,
  raw: Record<string, unknown>,
  missing: boolean,
  complain: Complain,
): Record<string, unknown> {
  const care: Record<string, unknown> = {}
  const bare =
    ['FOR_EACH', 'REPEAT', 'SUB_WORKFLOW', 'WAIT_FOR_EVENT'].includes(part.type) || /TRIGGER/.test(part.type)
  if (raw.retryOnFail === true && bare) {
    complain('parameter', 'retryOnFail', 'A node of this kind is not retried', true)
  } else if (raw.retryOnFail === true) {
    const whole = (value: unknown, fallback: number, max: number) =>
      Math.min(max, Math.max(1, Number.isFinite(value) ? Math.round(Number(value)) : fallback))
    care.retry = {
      maxAttempts: whole(raw.maxTries, 3, 100),
      initialIntervalMs: whole(raw.waitBetweenTries, 1_000, DAY_MS),
      backoffCoefficient: 1,
    }
  } else if (part.retry) care.retry = part.retry
  if (raw.onError === 'continueErrorOutput') care.onError = 'BRANCH'
  else if (raw.onError === 'continueRegularOutput' || raw.continueOnFail === true) care.onError = 'CONTINUE'
  for (const [kind, credential] of Object.entries(Object(raw.credentials))) {
    complain('credential', `credentials.${kind}`, 'Credentials are not taken over', credential)
  }
  if (raw.alwaysOutputData === true) {
    complain('parameter', 'alwaysOutputData', 'Nodes behind it run only where it puts something out', true)
  }
  if (typeof raw.notes === 'string' && raw.notes.trim() !== '')
    complain('note', 'notes', 'The note is not kept', raw.notes)
  // Nothing may let a run go past a placeholder.
  return missing ? {} : care
}
