import * as v from 'valibot'
import type { Pins } from '../../../db/executions/starts/pins.ts'
import { isObject } from '../../../workflows/json.ts'
import { objectField } from '../../http/fields.ts'
import { makePathItem } from '../../workflows/graph.ts'

/** The pinned outputs of a request. db checks that the graph has the nodes and handles. */
export const pinnedField = v.optional(
  v.pipe(
    objectField,
    v.rawCheck(({ dataset, addIssue }) => {
      for (const [id, pin] of Object.entries(Object(dataset.value))) addPinIssues(id, pin, addIssue)
    }),
    v.transform((pinned) => pinned as Pins),
    v.description(
      'For tests; needs the role BUILDER or higher. Outputs by node id, each `{output, handle?}`: such a ' +
        'node is not executed but given this output. `handle` is the source handle it takes, if it has ' +
        'several; for a node with perItem or allItems it may be left out, and those with items in `output` count. A trigger cannot be pinned: its output is `data`.',
    ),
    v.examples([{ fetch: { output: { status: 200 } } }]),
  ),
)

type AddIssue = (issue: { message: string; path: [v.ObjectPathItem, ...v.ObjectPathItem[]] }) => void

function addPinIssues(id: string, pin: unknown, addIssue: AddIssue): void {
  const at = (...keys: string[]) => keys.map((key) => makePathItem(key)) as [v.ObjectPathItem]
  if (!isObject(pin)) {
    addIssue({ message: 'must be an object', path: at(id) })
    return
  }
  const { output, handle } = pin
  if (output === undefined) addIssue({ message: 'is required', path: at(id, 'output') })
  if (handle !== undefined && handle !== null && typeof handle !== 'string')
    addIssue({ message: 'must be a string or null', path: at(id, 'handle') })
}
