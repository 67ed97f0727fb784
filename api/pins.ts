import * as v from 'valibot'
import type { Pins } from '../db/pins.ts'
import { isObject } from '../workflows/inputs.ts'
import { pathTo } from './graph.ts'

/** An object. (Valibot's own record would drop the keys `constructor` and `prototype`.) */
export const data = v.custom<Record<string, unknown>>(isObject, 'must be an object')

/** Outputs that a run is given. What the graph has no place for the verb says. */
export const pinned = v.optional(
  v.pipe(
    data,
    v.rawCheck(({ dataset, addIssue }) => {
      for (const [id, pin] of Object.entries(Object(dataset.value))) addPinIssues(id, pin, addIssue)
    }),
    v.transform((pinned) => pinned as Pins),
    v.description(
      'For tests, BUILDER and up: outputs by node id, `{output, handle?}`, that nodes are given instead of ' +
        "being run; `handle` is the one a node with several leaves by. A trigger's output is `data`.",
    ),
    v.examples([{ fetch: { output: { status: 200 } } }]),
  ),
)

type AddIssue = (issue: { message: string; path: [v.ObjectPathItem, ...v.ObjectPathItem[]] }) => void

function addPinIssues(id: string, pin: unknown, addIssue: AddIssue): void {
  const at = (...keys: string[]) => keys.map((key) => pathTo(key)) as [v.ObjectPathItem]
  if (!isObject(pin)) {
    addIssue({ message: 'must be an object', path: at(id) })
    return
  }
  const { output, handle } = pin
  if (output === undefined) addIssue({ message: 'is required', path: at(id, 'output') })
  if (handle !== undefined && handle !== null && typeof handle !== 'string')
    addIssue({ message: 'must be a text or null', path: at(id, 'handle') })
}
