import { expect, test } from 'vitest'
import { type Reply, useVendors } from '../../support/connectors/vendor.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
const start = useVendors(host)

const text = (content: string) => ({ paragraph: { elements: [{ textRun: { content } }, { pageBreak: {} }] } })
const DOCUMENT = {
  documentId: 'd1',
  title: 'Plan',
  body: {
    content: [
      { sectionBreak: {} },
      text('One\n'),
      {
        table: {
          tableRows: [{ tableCells: [{ content: [text('Cell\n')] }, { content: [text('Next\n')] }] }],
        },
      },
      { tableOfContents: { content: [text('Contents\n')] } },
      text('Two\n'),
    ],
  },
}

async function startDocs(reply: (count: number) => Reply = () => ({ json: DOCUMENT })) {
  const vendor = await start((_, count) => reply(count))
  const act = (action: string, input: object) => vendor.act({ connector: 'google-docs', action, input })
  return { vendor, act }
}

test('documents are read, whole or as a text', async () => {
  const { act, vendor } = await startDocs((count) => (count === 1 ? { status: 500 } : { json: DOCUMENT }))
  expect(await act('getDocument', { document: 'd1' })).toMatchObject({ retries: 1, output: DOCUMENT })
  expect((await act('readText', { document: 'd1' })).output).toEqual({
    ...{ documentId: 'd1', content: 'One\nCell\nNext\nContents\nTwo\n' },
  })
  expect((await act('readText', { document: 'd1', tables: false })).output.content).toBe('One\nTwo\n')
  expect(vendor.asked.at(-1)).toMatchObject({ method: 'GET', path: '/v1/documents/d1' })
})

test.each([
  [
    'insertText',
    { text: 'x' },
    { requests: [{ insertText: { text: 'x', endOfSegmentLocation: { segmentId: '' } } }] },
  ],
  [
    'insertText',
    { text: 'x', index: 3 },
    { requests: [{ insertText: { text: 'x', location: { index: 3 } } }] },
  ],
  [
    'replaceText',
    { text: 'a' },
    { requests: [{ replaceAllText: { replaceText: '', containsText: { text: 'a', matchCase: false } } }] },
  ],
  [
    'updateDocument',
    { requests: [{ deleteHeader: { headerId: 'h' } }], writeControl: { requiredRevisionId: 'r' } },
    { requests: [{ deleteHeader: { headerId: 'h' } }], writeControl: { requiredRevisionId: 'r' } },
  ],
] as const)('%s is one request', async (action, input, json) => {
  const answer = { documentId: 'd1', replies: [{}] }
  const { act, vendor } = await startDocs(() => ({ json: answer }))
  expect((await act(action, { document: 'd1', ...input })).output).toEqual(answer)
  expect(vendor.asked[0]).toMatchObject({ method: 'POST', path: '/v1/documents/d1:batchUpdate' })
  expect(vendor.asked[0]!.json).toEqual(json)
})

test('a change is never made twice, and is made after a limit', async () => {
  const cut = await startDocs(() => 'cut')
  expect((await cut.act('insertText', { document: 'd1', text: 'x' })).error).toMatch(
    /no answer came that says so/,
  )
  expect(cut.vendor.asked).toHaveLength(1)
  const busy = await startDocs((count) =>
    count === 1 ? { status: 429, headers: { 'retry-after': '0' } } : { json: DOCUMENT },
  )
  expect(await busy.act('createDocument', { title: 'Plan' })).toMatchObject({ status: 'SUCCESS', retries: 1 })
  expect(busy.vendor.asked[1]!.json).toEqual({ title: 'Plan' })
})
