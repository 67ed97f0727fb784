import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createExactMask } from '../../../db/redaction/exact.ts'

const SECRET = 'canary/Wörld+"7\\x'

/** The forms in which a server may send a secret back. */
function listEchoes(secret: string): string[] {
  const bytes = Buffer.from(secret)
  return [
    secret,
    encodeURIComponent(secret),
    encodeURI(secret),
    new URLSearchParams({ a: secret }).toString().slice(2),
    bytes.toString('hex'),
    bytes.toString('hex').toUpperCase(),
    bytes.toString('base64'),
    bytes.toString('base64url'),
    Buffer.from(`u:${secret}`).toString('base64'),
    Buffer.from(`us:${secret}:x`).toString('base64'),
    JSON.stringify(secret),
    JSON.stringify(JSON.stringify(secret)),
    JSON.stringify(secret).replaceAll('/', '\\/'),
    JSON.stringify(secret).replaceAll('/', '\\/').replace('ö', '\\u00f6'),
    secret.replaceAll('"', '&quot;'),
  ]
}

describe('a mask of exact values', () => {
  const mask = createExactMask([SECRET])

  test('finds a secret in every form, in values and in their JSON', async () => {
    for (const echo of listEchoes(SECRET)) {
      const value = { a: [`before ${echo} after`], [echo]: { deep: echo } }
      const masked = mask.value(value)
      expect(JSON.stringify(masked), echo).toContain('[redacted]')
      const text = await mask.json(JSON.stringify(value))
      expect(JSON.parse(text), echo).toEqual(masked)
      for (const form of [echo, SECRET, encodeURIComponent(SECRET)]) expect(text).not.toContain(form)
    }
  })

  test('leaves all else as it is, whatever its keys are and whatever it looks like', async () => {
    const value = { token: 'sk-abcdefghijklmnopqrstuvwxyz', password: 'p', card: 4111111111111111, n: null }
    expect(mask.value(value)).toBe(value)
    expect(await mask.json(JSON.stringify(value))).toBe(JSON.stringify(value))
  })

  test('masks what is left of a secret at the end of a text', () => {
    const long = createExactMask(['k'.repeat(10) + 'x'.repeat(5_000)])
    expect(long.start(`body: ${'k'.repeat(10)}${'x'.repeat(3_000)}`)).toBe('body: [redacted]')
    expect(mask.start('so canary/')).toBe('so [redacted]')
    expect(mask.start('so canary')).toBe('so [redacted]')
    expect(mask.start('so cana')).toBe('so cana')
  })

  test('masks what is left of a secret before the dots of an excerpt', () => {
    expect(mask.excerpt('it said: canary/W... (42)')).toBe('it said: [redacted]... (42)')
    expect(mask.excerpt('it said: canary%2FW... and more')).toBe('it said: [redacted]... and more')
    expect(mask.excerpt(`whole: ${SECRET}...`)).toBe('whole: [redacted]...')
    expect(mask.excerpt('it said: cana... and canary')).toBe('it said: cana... and canary')
    expect(createExactMask(['dots...inside']).excerpt('a dots...inside b')).toBe('a [redacted] b')
  })

  test('masks a secret in bytes, however they are cut into pieces', async () => {
    const text = `${listEchoes(SECRET).join(' | ')} ünd ${SECRET}${SECRET} canary`
    const clean = mask.text(text)
    expect(clean.match(/redacted/g)).toHaveLength(listEchoes(SECRET).length + 2)
    for (const size of [1, 2, 7, 64, 10_000]) {
      const bytes = Buffer.from(text)
      async function* cut() {
        for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
      }
      const pieces: Uint8Array[] = []
      for await (const piece of mask.bytes(cut())) pieces.push(piece)
      expect(Buffer.concat(pieces).toString(), String(size)).toBe(clean)
    }
  })

  test('masks a short secret where it is a whole value', async () => {
    const short = createExactMask(['pw', ':', '12'])
    const value = { pw: 'pw', text: 'the pw of pw', a: ':', list: [12, 123, '12', ',":"'] }
    const masked = {
      '[redacted]': '[redacted]',
      text: 'the pw of pw',
      a: '[redacted]',
      list: ['[redacted]', 123, '[redacted]', ',":"'],
    }
    expect(short.value(value)).toEqual(masked)
    expect(JSON.parse(await short.json(JSON.stringify(value)))).toEqual(masked)
  })

  test('a JSON text stays the JSON of what is masked in its value', async () => {
    const letters = fc.constantFrom(...'ab1"\\/n,:{}[]ö\n fu'.split(''))
    const texts = fc.string({ unit: letters, minLength: 1, maxLength: 12 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(texts, { minLength: 1, maxLength: 3 }),
        fc.jsonValue(),
        texts,
        async (secrets, value, more) => {
          const exact = createExactMask(secrets)
          const whole = {
            value,
            texts: [more, ...secrets, `${more}${secrets[0]}${more}`],
            no: [false, null, 1e6],
          }
          const text = await exact.json(JSON.stringify(whole))
          const masked = JSON.parse(text)
          expect(masked.texts).toEqual(exact.value(whole).texts)
          expect(exact.value(whole).texts).toEqual(whole.texts.map(exact.text))
          for (const secret of secrets.filter((one) => one.length >= 6 && !'[redacted]'.includes(one)))
            for (const one of masked.texts) if (!one.includes('[redacted]')) expect(one).not.toContain(secret)
        },
      ),
      { numRuns: 500 },
    )
  })
})

describe('a text in pieces', () => {
  const tell = (secrets: string[], pieces: string[]) => {
    const masked = createExactMask(secrets).pieces()
    const told = pieces.map((piece) => masked.next(piece))
    return [...told, masked.end()]
  }

  test('is told at once where no secret can have begun, and never with a secret in it', () => {
    expect(tell(['sk-abcdefgh'], ['Hello', ' you, s', 'k-abc', 'def', 'gh', ' and sk', '-no'])).toEqual([
      'Hello',
      ' you, ',
      '',
      '',
      '[redacted]',
      ' and ',
      'sk-no',
      '',
    ])
    expect(tell(['sk-abcdefgh'], ['It is sk-abcdef'])).toEqual(['It is ', 'sk-abcdef'])
  })

  test('is, joined, the masked text, wherever it was cut', () => {
    // Secrets that overlap themselves and each other, and short ones that count only as a whole.
    const letters = fc.constantFrom('a', 'b', 'ab', 'ba', '-', '%', '😀')
    const secret = fc.array(letters, { minLength: 1, maxLength: 12 }).map((parts) => parts.join(''))
    const text = fc.array(fc.array(letters, { maxLength: 6 }).map((parts) => parts.join('')))
    fc.assert(
      fc.property(fc.array(secret, { minLength: 1, maxLength: 3 }), text, (secrets, pieces) => {
        expect(tell(secrets, pieces).join('')).toBe(createExactMask(secrets).text(pieces.join('')))
      }),
      { numRuns: 3_000 },
    )
  })
})
