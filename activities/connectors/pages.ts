import type { ConnectorPages, ConnectorStep } from '../../workflows/connectors/connector.ts'
import { MAX_ANSWER_BYTES } from '../../workflows/nodes/calls.ts'
import { invalidConfig, NodeFailure } from '../nodes/kit/failure.ts'
import type { NodeContext } from '../nodes/kit/node.ts'
import { findNextLink } from './links.ts'
import { type ActionCall, type Answer, type Further, sendStep } from './step.ts'

/** The most pages, items and bytes that one action reads. */
const MAX_PAGES = 1_000
const MAX_LISTED = 10_000
const MAX_BYTES = 2 * MAX_ANSWER_BYTES

/**
 * Reads page after page, and answers with all of their items. Throws a NodeFailure (OutputTooLarge) for more than 10,000
 * items that no limit keeps out, and InvalidResponse for pages that go round in a circle.
 */
export async function sendPages(
  context: NodeContext,
  call: ActionCall,
  step: ConnectorStep,
): Promise<Answer> {
  const { evaluator, bindings } = context
  const pages = step.pages!
  const wanted = pages.limit === undefined ? null : await evaluator.evaluate(pages.limit, bindings)
  const most = typeof wanted === 'number' ? wanted : Number.POSITIVE_INFINITY
  const items: unknown[] = []
  const seen = new Set<string>()
  let further: Further = {}
  let bytes = 0
  for (let count = 1; ; count++) {
    const answer = await sendStep(context, call, step, undefined, further)
    bytes += answer.bytes
    const page = { ...bindings, item: answer.body }
    const found = pages.items === undefined ? answer.body : await evaluator.evaluate(pages.items, page)
    for (const item of Array.isArray(found) ? found : found === null ? [] : [found]) items.push(item)
    if (items.length >= most) return { ...answer, body: items.slice(0, most) }
    const next =
      pages.next === 'link' ? findNextLink(answer.headers.link) : await evaluator.evaluate(pages.next, page)
    if (next === null || next === undefined || next === '' || next === false)
      return { ...answer, body: items }
    if (items.length > MAX_LISTED || bytes > MAX_BYTES || count === MAX_PAGES)
      throw new NodeFailure(`There are more than ${items.length} entries: set a limit`, {
        type: 'OutputTooLarge',
      })
    const mark = JSON.stringify(next)
    if (seen.has(mark))
      throw new NodeFailure(`${call.connector.title} leads to the same page again and again`, {
        type: 'InvalidResponse',
      })
    seen.add(mark)
    further = leadTo(next, pages, call.server)
  }
}

function leadTo(next: unknown, { into }: ConnectorPages, server: string): Further {
  if (into) return 'query' in into ? { query: { [into.query]: next } } : { body: { [into.body]: next } }
  const url = typeof next === 'string' ? URL.parse(next, `${server}/`) : null
  // What a service says must not lead the credential to another one.
  if (url?.origin !== new URL(server).origin)
    throw invalidConfig('connector', 'leads to a next page at another address than its own')
  return { url: url.href.replaceAll('{', '%7B') }
}
