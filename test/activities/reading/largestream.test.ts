import { expect, test } from 'vitest'
import { createQuoter } from '../../../activities/reading/largestream.ts'

function quote(text: string, size: number) {
  const quoter = createQuoter()
  const bytes = Buffer.from(text)
  const pieces: Uint8Array[] = []
  for (let at = 0; at < bytes.length; at += size) pieces.push(quoter.push(bytes.subarray(at, at + size)))
  return { text: Buffer.concat([...pieces, quoter.end()]).toString(), count: quoter.count() }
}

const DIGITS = '12345678901234567890'

test.each([
  [`{"a":${DIGITS},"b":[-${DIGITS}]}`, `{"a":"${DIGITS}","b":["-${DIGITS}"]}`, 2],
  [`{"a":"${DIGITS} \\" ${DIGITS}","é":${DIGITS}}`, `{"a":"${DIGITS} \\" ${DIGITS}","é":"${DIGITS}"}`, 1],
  ['{"a":9007199254740991,"b":1.5e10,"c":0.1234567890123456789}', undefined, 0],
  [`: it's "quoted\ndata: {"a":${DIGITS}}\n\n`, `: it's "quoted\ndata: {"a":"${DIGITS}"}\n\n`, 1],
  [DIGITS, `"${DIGITS}"`, 1],
  [
    `event: m${DIGITS}\r\nid: ${DIGITS}\r\nid:${DIGITS}\nretry: 10\n:${DIGITS}\ndata: {"a":${DIGITS}}\r\ndata:[${DIGITS}]\n\n`,
    `event: m${DIGITS}\r\nid: ${DIGITS}\r\nid:${DIGITS}\nretry: 10\n:${DIGITS}\ndata: {"a":"${DIGITS}"}\r\ndata:["${DIGITS}"]\n\n`,
    2,
  ],
  [`{"id":\n${DIGITS},\n"b":\r\n-${DIGITS}\n}`, `{"id":\n"${DIGITS}",\n"b":\r\n"-${DIGITS}"\n}`, 2],
])('%s', (text, wanted = text, count) => {
  for (const size of [1, 2, 3, 7, 10_000])
    expect(quote(text, size), `in pieces of ${size}`).toEqual({ text: wanted, count })
})

test('a number of a million digits is passed on, and breaks nothing', () => {
  const text = `[${'1'.repeat(1_000_000)},${DIGITS}]`
  expect(quote(text, 65_536)).toEqual({ text: text.replace(DIGITS, `"${DIGITS}"`), count: 1 })
})
