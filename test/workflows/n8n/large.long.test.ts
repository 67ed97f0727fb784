import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { convertWorkflow } from '../../../workflows/n8n/convert.ts'
import { repairGraph } from '../../../workflows/n8n/repair.ts'
import type { Work } from '../../../workflows/turns.ts'
import { createDocument, editFields } from './documents.ts'

type Nodes = Parameters<typeof createDocument>[0]
type Named = [string, Nodes[string]]

const list = <T>(count: number, make: (at: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i))
const start: Nodes = { T: ['manualTrigger'] }
const all = (nodes: Named[]): Nodes => ({ ...start, ...Object.fromEntries(nodes) })
const loop: Nodes[string] = ['splitInBatches@3', { options: {} }]
const reads = (text: string): Nodes[string] => editFields({ a: text })

/** Documents that are as large as they may be, each in its own way. */
const DOCUMENTS: Record<string, () => ReturnType<typeof createDocument>> = {
  'circles, one behind the other': () =>
    createDocument(
      all(
        list(249, (i) => [
          [`A${i}`, reads(`=${'x'.repeat(2_500)}{{ $json.a }}`)] as Named,
          [`I${i}`, ['if@2.2', { note: `={{ $('A${i}').first().json.a }}` }]] as Named,
        ]).flat(),
      ),
      ...list(249, (i) => [
        i ? `I${i - 1} -> A${i}` : 'T -> A0',
        `A${i} -> I${i}`,
        `I${i}:1 -> A${i}`,
      ]).flat(),
    ),
  'loops in loops': () =>
    createDocument(
      all(
        list(240, (i) => [
          [`L${i}`, loop] as Named,
          [`S${i}`, reads(`$runIndex + $node["L${i}"].context["noItemsLeft"]`)] as Named,
        ]).flat(),
      ),
      ...list(240, (i) => [i ? `S${i - 1} -> L${i}` : 'T -> L0', `L${i}:1 -> S${i}`]).flat(),
      'S239 -> L239',
      ...list(239, (i) => `L${i + 1} -> L${i}`),
    ),
  'loops, each read by the next': () =>
    createDocument(
      all(
        list(240, (i) => [
          [`L${i}`, loop] as Named,
          [`S${i}`, reads(`$('S${Math.max(0, i - 1)}').item.json.a + $runIndex`)] as Named,
        ]).flat(),
      ),
      ...list(240, (i) => [
        i ? `L${i - 1} -> L${i}` : 'T -> L0',
        `L${i}:1 -> S${i}`,
        `S${i} -> L${i}`,
      ]).flat(),
    ),
  'as many connections as there may be': () =>
    createDocument(
      all(list(490, (i) => [`N${i}`, i % 7 ? ['aggregate'] : ['merge@3']])),
      'T -> N0',
      ...list(485, (i) => [1, 2, 3, 5].map((far) => `N${i} -> N${i + far}`)).flat(),
    ),
  'as many ways back': () =>
    createDocument(
      all(list(490, (i) => [`N${i}`, ['noOp']])),
      'T -> N0',
      ...list(489, (i) => [1 + i, i >> 1, Math.floor(i / 3)].map((to) => `N${i} -> N${to}`)).flat(),
    ),
  'long expressions': () =>
    createDocument(
      all(list(498, (i) => [`N${i}`, reads(`[${list(1_100, (k) => `$json.a${k}`).join()}]`)])),
      ...list(498, (i) => `${i ? `N${i - 1}` : 'T'} -> N${i}`),
    ),
  'settings that are read again and again': () =>
    createDocument(
      all(
        list(498, (i) => {
          const [type, parameters] = reads(list(140, () => `$('N${(i + 1) % 498}').params.text`).join('+'))
          return [`N${i}`, [type, { ...parameters, text: 'y'.repeat(1_990) }]]
        }),
      ),
      ...list(498, (i) => `${i ? `N${i - 1}` : 'T'} -> N${i}`),
    ),
  'a wide loop of nodes that read each other': () =>
    createDocument(
      all([
        ['L', loop],
        ...list(
          480,
          (i): Named => [`A${i}`, reads(list(100, (k) => `$('A${(i + k) % 480}').item.json.a`).join('+'))],
        ),
      ]),
      'T -> L',
      ...list(480, (i) => [`L:1 -> A${i}`, `A${i} -> L`]).flat(),
    ),
}

/** The processor time of this thread, in milliseconds. */
const spent = () => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

/** Does all of the work; returns how long its longest piece and all of them have taken this thread. */
function measure<T>(work: Work<T>): { value: T; longest: number; total: number } {
  let [longest, total] = [0, 0]
  for (;;) {
    const before = spent()
    const { done, value } = work.next()
    const took = spent() - before
    longest = Math.max(longest, took)
    total += took
    if (done) return { value, longest, total }
  }
}

// No measure of speed: each takes a tenth of this, and what is looked through once per node far more.
const PIECE_MS = 1_000
const ALL_MS = 6_000

for (const [name, make] of Object.entries(DOCUMENTS))
  test(`a document does not hold up others: ${name}`, { tags: 'long' }, () => {
    const converted = measure(convertWorkflow(make(), () => undefined))
    expect(converted.value!.nodes.length).toBeGreaterThan(480)
    const repair = repairGraph({ ...converted.value!, expressions: 2 }, () => {}, randomUUID)
    const repaired = measure(repair)
    expect(Math.max(converted.longest, repaired.longest)).toBeLessThan(PIECE_MS)
    expect(converted.total + repaired.total).toBeLessThan(ALL_MS)
  })
