import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { createParser } from 'eventsource-parser'
import { afterAll, describe, expect, test } from 'vitest'
import { createExactMask } from '../../../db/redaction/exact.ts'
import { missing, useBrowser } from '../../support/browser.ts'
import { createChats } from '../../support/chat/replies.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const chats = createChats(service)
const url = await service.listen()
afterAll(() => service.bus.stop())

/** A reply of which the first part is there, and what writes the rest. */
async function begin() {
  const reply = await chats.addReply()
  const mask = createExactMask([]).pieces()
  const writer = service.replies.open({ executionId: reply.executionId, step: 1, attempt: 1, after: 0 }, mask)
  writer.write('Grüß dich, ')
  return {
    ...reply,
    async finish() {
      writer.write('😀!\n\ndata: x')
      writer.end()
      await chats.save(reply.replyId, WHOLE)
    },
  }
}
const WHOLE = 'Grüß dich, 😀!\n\ndata: x'

test('curl -N shows the text as it comes, byte for byte as documented', async () => {
  const { path, finish } = await begin()
  const curl = spawn('curl', ['-sN', '-H', `cookie: ${service.admin}`, url + path], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let shown = ''
  const first = Promise.withResolvers<void>()
  curl.stdout.on('data', (bytes) => {
    shown += bytes
    if (shown.includes('dich')) first.resolve()
  })
  const all = text(curl.stdout)
  await first.promise
  expect(shown).toMatch(
    /^retry: 2000\n\nid: 11-[\da-f]{16}-1-1\nevent: message\ndata: \{"type":"chunk","content":"Grüß dich, "\}\n\n$/,
  )
  await finish()
  const events: { event: string | undefined; data: string }[] = []
  createParser({ onEvent: ({ event, data }) => events.push({ event, data }) }).feed(await all)
  expect(events).toEqual([
    { event: 'message', data: '{"type":"chunk","content":"Grüß dich, "}' },
    { event: 'message', data: '{"type":"chunk","content":"😀!\\n\\ndata: x"}' },
    { event: 'message', data: '{"type":"done","tokenUsage":{"input":3,"output":5}}' },
  ])
})

describe.skipIf(missing)('Chromium', () => {
  const browser = useBrowser(() => url)

  test('reads it with fetch, and with an EventSource, which ends for good after the last event', {
    tags: 'long',
  }, async () => {
    await browser.signIn()
    const { path, finish } = await begin()
    await browser.page.evaluate((at) => {
      const state = { fetched: '', chunks: [] as string[], last: '', errors: 0, source: undefined as unknown }
      Object.assign(globalThis, { state })
      void fetch(at).then(async (response) => {
        const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
        for (;;) {
          const { done, value } = await reader.read()
          if (done) break
          state.fetched += value
        }
      })
      const source = new EventSource(at)
      state.source = source
      source.addEventListener('message', ({ data }) => {
        const event = JSON.parse(data)
        if (event.type === 'chunk') state.chunks.push(event.content)
        else state.last = event.type
      })
      source.addEventListener('error', () => state.errors++)
    }, path)
    type State = { fetched: string; chunks: string[]; last: string; source: EventSource }
    const read = () =>
      browser.page.evaluate(() => {
        const { fetched, chunks, last, source } = (globalThis as unknown as { state: State }).state
        return { fetched, text: chunks.join(''), last, readyState: source.readyState }
      })
    await expect.poll(async () => (await read()).text).toBe('Grüß dich, ')
    await expect.poll(async () => (await read()).fetched).toContain('dich')
    await finish()
    // It reconnects after the end, and is told by 204 that there is no more: 2 is closed.
    await expect.poll(read, { timeout: 20_000 }).toMatchObject({ text: WHOLE, last: 'done', readyState: 2 })
    expect((await read()).fetched).toContain('"type":"done"')
  })
})
