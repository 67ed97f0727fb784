import { TURN_UNITS, type Work } from '../turns.ts'
import type { CircleBlock } from './circles.ts'
import type { SourceLink, SourceNode, SourceWorkflow } from './document.ts'
import { type LoopBlock, readLoopOutputs, resetsWhenDone } from './loops.ts'
import type { BuiltNode } from './parts.ts'
import type { ProblemReporter } from './report.ts'

/** The units of work for a node, and for a connection that is followed from it. */
const NODE_WORK = 100
const LINK_WORK = 0.5

type ImportedGraph = {
  source: SourceWorkflow
  loops: ReadonlyMap<string, LoopBlock>
  circles: ReadonlyMap<string, CircleBlock>
  built: ReadonlyMap<string, BuiltNode>
  reporterOf: (node: string) => ProblemReporter
}

/** Reports where nodes that were imported do something else than in n8n, though each by itself does the same. */
export function* reportDifferences(given: ImportedGraph): Work<void> {
  const { source, built, reporterOf } = given
  const outward = Map.groupBy(source.links, ({ from }) => from)
  const repeated = listRepeated(given, outward)
  const ways = createWays(source, outward)
  for (const node of source.nodes) {
    yield Math.min(TURN_UNITS, NODE_WORK + LINK_WORK * source.links.length)
    if (node.disabled || built.get(node.name)?.mapped.isPlaceholder) continue
    const report = reporterOf(node.name)
    reportJoin(given, node, ways, report)
    reportLostPairs(repeated, node, report)
    reportLoopEnds(given, node, report)
    reportCode(node, report)
    const text = listTexts(node.parameters).find((one) => one.startsWith('=') && /\$prevNode\b/.test(one))
    if (text)
      report(
        'expression',
        'parameters',
        'There is no $prevNode here, and the node fails: write the name.',
        text,
      )
  }
}

/** The nodes behind some nodes, and those themselves. */
function findBehind(names: string[], outward: Map<string, SourceLink[]>): Set<string> {
  const found = new Set(names)
  for (const one of found) for (const { to } of outward.get(one) ?? []) found.add(to)
  return found
}

/** n8n executes a node once for each connection that brings items, and all nodes behind it as well. */
function reportJoin(
  { source, loops, circles, built }: ImportedGraph,
  node: SourceNode,
  ways: Ways,
  report: ProblemReporter,
): void {
  const body = (loops.get(node.name) ?? circles.get(node.name))?.members
  const links = source.links.filter(({ from, to }) => to === node.name && !body?.has(from))
  const inputs = Map.groupBy(links, ({ input }) => input)
  if (![...inputs.values()].some((several) => several.length > 1 && !areExclusive(several, ways))) return
  const answers = source.nodes.some(
    ({ type, parameters }) => type === 'webhook' && parameters.responseMode === 'lastNode',
  )
  const behind = [...ways.behind(node.name)]
  const collects = behind.some((name) => built.get(name)?.mapped.works === 'all')
  if (!answers && !collects) return
  const message =
    'Several connections lead to this input. If more than one brings items, n8n executes the node and those behind it ' +
    'once for each connection, and the answer is that of the last time. Perdure executes it once, with the items of ' +
    'all: put a Merge node in front of it if that is not what you want.'
  report('items', 'connections', message, links)
}

/** Whether no two of the connections can bring items in the same execution: they begin at different triggers. */
function areExclusive(links: SourceLink[], { before }: Ways): boolean {
  const all = links.map(({ from }) => before(from))
  const seen = new Set<string>()
  for (const way of all) {
    for (const name of way) if (seen.has(name)) return false
    for (const name of way) seen.add(name)
  }
  return true
}

/** The nodes before and behind each, and the node itself. Found once. */
type Ways = { before(name: string): Set<string>; behind(name: string): Set<string> }

function createWays({ links }: SourceWorkflow, outward: Map<string, SourceLink[]>): Ways {
  const inward = Map.groupBy(links, ({ to }) => to)
  const known = { before: new Map<string, Set<string>>(), behind: new Map<string, Set<string>>() }
  const find = (way: keyof Ways, name: string) => {
    const found = known[way].get(name) ?? new Set([name])
    if (known[way].has(name)) return found
    known[way].set(name, found)
    for (const one of found) {
      if (way === 'before') for (const { from } of inward.get(one) ?? []) found.add(from)
      else for (const { to } of outward.get(one) ?? []) found.add(to)
    }
    return found
  }
  return { before: (name) => find('before', name), behind: (name) => find('behind', name) }
}

const PAIRED = /\$\(\s*(["'`])((?:(?!\1)[^\\]|\\.)*)\1\s*\)\s*\.\s*(?:item\b|itemMatching|pairedItem)/g
const COUNTS = /\$(?:this)?[rR]unIndex\b|[\])]\s*\.runIndex\b/

/** Items are not paired with those outside of their loop, and a loop counts its rounds, not the runs of each node. */
function reportLostPairs(repeated: Repeated[], node: SourceNode, report: ProblemReporter): void {
  const texts = listTexts(node.parameters)
  const pairs = texts.flatMap((text) => [...text.matchAll(PAIRED)].map(([, , name = '']) => ({ name, text })))
  for (const { name: loopName, members, after, sure } of repeated) {
    const isInside = members.has(node.name)
    if (!isInside && !after.has(node.name)) continue
    const lost = pairs.filter(
      ({ name }) => name !== loopName && !(isInside ? members.has(name) : after.has(name)),
    )
    for (const { name, text } of lost) {
      const message =
        `The item of "${name}" that belongs to this one is on the other side of the loop "${loopName}", where Perdure ` +
        'does not find it, and the node fails: take the field along with the items, or read .first() or .all().'
      report('expression', 'parameters', message, text)
    }
    const counts = isInside && !sure.has(node.name) && texts.find((text) => COUNTS.test(text))
    if (counts) {
      const message =
        'n8n counts in $runIndex how often the node itself was executed. Here it is the number of the round of the innermost ' +
        'loop, also if the node was left out of earlier ones.'
      report('expression', 'parameters', message, counts)
    }
  }
}

/**
 * A loop or a circle: its nodes, and those that come after it is over. `sure`: those that are executed once in each round,
 * and not in a round of another loop, if there is anything to be executed.
 */
type Repeated = { name: string; members: Set<string>; after: Set<string>; sure: Set<string> }

function listRepeated(given: ImportedGraph, outward: Map<string, SourceLink[]>): Repeated[] {
  const { source, loops, circles } = given
  const behind = (ends: SourceLink[]) =>
    findBehind(
      ends.map(({ to }) => to),
      outward,
    )
  const ofLoops = [...loops].map(([name, { node, members }]) => {
    const { loop, done } = readLoopOutputs(node)
    const own = outward.get(name) ?? []
    const first = own.filter(({ output }) => output === loop).map(({ to }) => to)
    const after = behind(own.filter(({ output }) => output === done))
    return { name, members, after, sure: findSure(given, outward, members, first) }
  })
  const ofCircles = [...circles].map(([name, { members }]) => {
    const ends = source.links.filter(({ from, to }) => members.has(from) && !members.has(to))
    return { name, members, after: behind(ends), sure: findSure(given, outward, members, [name]) }
  })
  return [...ofLoops, ...ofCircles]
}

/** The nodes from `first` on that are reached by the only output of each before them. */
function findSure(
  { loops, circles, built }: ImportedGraph,
  outward: Map<string, SourceLink[]>,
  members: Set<string>,
  first: string[],
): Set<string> {
  const inner = [...loops.values(), ...circles.values()].filter((block) => block.members.size < members.size)
  const isOwn = (name: string) => members.has(name) && !inner.some((block) => block.members.has(name))
  const found = new Set(first.filter(isOwn))
  for (const name of found) {
    const { mapped } = built.get(name)!
    if (loops.has(name) || (mapped.handles && !mapped.isPlaceholder)) continue
    for (const { to } of outward.get(name) ?? []) if (isOwn(to)) found.add(to)
  }
  return found
}

/** Where a batch ends without coming back, n8n ends the loop; and a loop in a loop goes on where it was. */
function reportLoopEnds(
  { source, loops, built }: ImportedGraph,
  node: SourceNode,
  report: ProblemReporter,
): void {
  const loop = loops.get(node.name)
  if (!loop) return
  if (loop.within !== undefined && !resetsWhenDone(node)) {
    const message =
      'In n8n a loop in a loop does not begin again with each batch of the outer one, unless it is reset. Here it does.'
    report('items', 'parameters.options', message, loop.within)
  }
  const leaks = [...loop.members].filter((name) => {
    const { mapped } = built.get(name)!
    const outputs = (mapped.handles ?? [null]).filter((handle) => handle !== '').length
    const led = new Set(source.links.filter(({ from }) => from === name).map(({ output }) => output))
    const drops =
      mapped.type === 'FILTER' || (mapped.type === 'SWITCH' && !mapped.handles?.includes('default'))
    return !mapped.isPlaceholder && !loops.has(name) && (drops || led.size < outputs)
  })
  if (leaks.length === 0) return
  const message =
    `If nothing of a batch comes back to this node (it may end at ${leaks
      .slice(0, 5)
      .map((name) => `"${name}"`)
      .join(', ')}), ` +
    'n8n ends the loop there and never leaves by "done". Perdure goes on with the next batch.'
  report('items', 'connections', message, leaks)
}

function reportCode({ type, parameters, raw }: SourceNode, report: ProblemReporter): void {
  const code = String(parameters.jsCode ?? parameters.functionCode ?? '')
  const isEach = type === 'functionItem' || parameters.mode === 'runOnceForEachItem'
  if (/\bgetWorkflowStaticData\b/.test(code)) {
    const message =
      'The data that this code keeps begins empty: what n8n has kept is not imported. It is kept when the node is done, also ' +
      'if the execution fails later, and code that another execution was faster than is run again.'
    report('parameter', 'parameters.jsCode', message, null)
  }
  if (/\bbinary\b/.test(code) && /\b(?:fileName|mimeType|fileExtension)\s*(?:=(?!=)|:)/.test(code)) {
    const message =
      'If this code gives another name or type to a file that it was given, the file keeps those that it was stored under. ' +
      'Files that the code makes of base64 have the name and type that it gives them.'
    report('parameter', 'parameters.jsCode', message, null)
  }
  const outside = /\b(require|process|fetch)\b|\bthis\.helpers\b|\$helpers\b/.exec(code)
  if (outside && (type === 'code' || type === 'function' || type === 'functionItem')) {
    const message = `The code uses ${outside[0]}, which there is not here: the node fails when it gets there.`
    report('expression', 'parameters.jsCode', message, outside[0])
  }
  const continues = raw.continueOnFail === true || /^continue/.test(String(raw.onError ?? ''))
  if (isEach && continues && (type === 'code' || type === 'functionItem')) {
    const message =
      'If the code fails for one item, n8n goes on with the others. Here the node fails as a whole, and one error goes ' +
      'on: catch errors in the code.'
    report('items', 'onError', message, raw.onError ?? null)
  }
  if (type === 'executeWorkflow' && parameters.mode === 'each' && raw.onError === 'continueErrorOutput') {
    const message = 'The errors of single items leave by the error output, which older versions of n8n lose.'
    report('items', 'onError', message, raw.onError)
  }
  const { fromFormat, timezone } = Object(parameters.options)
  if (type === 'dateTime' && fromFormat && !timezone) {
    const message = 'n8n reads a date in this format in the time zone of its machine. Here it is read in UTC.'
    report('parameter', 'parameters.options.fromFormat', message, fromFormat)
  }
}

/** All texts in a value. */
function listTexts(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(listTexts)
}
