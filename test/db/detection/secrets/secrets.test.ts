import { describe, expect, test } from 'vitest'
import type { PiiKind } from '../../../../db/detection/pii/kinds.ts'
import { findPii } from '../../../../db/detection/pii/pii.ts'
import { VENDOR_FORMS } from '../../../../db/detection/secrets/vendors.ts'
import { redactText } from '../../../../db/redaction/redact.ts'
import { AROUND_KEY, AROUND_NAMED, KEYS, NAMED_KEYS, NO_KEYS } from '../../../bench/guardrails/pii/keys.ts'
import { createDraw } from '../../../bench/guardrails/pii/random.ts'

const SECRETS: ReadonlySet<PiiKind> = new Set<PiiKind>(['api_key', 'jwt'])
const d = createDraw(2026)

test('there are forms of well over 100 vendors, each one a pattern', () => {
  expect(new Set(VENDOR_FORMS.map(([vendor]) => vendor.split('-')[0])).size).toBeGreaterThan(120)
  for (const [vendor, source] of VENDOR_FORMS) expect(() => new RegExp(source), vendor).not.toThrow()
})

test.each(Object.entries(KEYS))('%s, wherever it stands, is found and masked', (_name, make) => {
  for (const around of AROUND_KEY) {
    const key = make(d)
    const text = around(key)
    const found = findPii(text, SECRETS)
    const start = text.indexOf(key)
    const told = found.some(
      (one) => one.start <= start + key.length * 0.2 && one.end >= start + key.length - 2,
    )
    // A web hook's scheme is no secret, and of a storage key the signs of equality are not.
    expect(told, text).toBe(true)
    const masked = redactText(text)
    expect(masked, text).toContain('[redacted]')
    expect(masked, text).not.toContain(key.slice(-20))
  }
})

test.each(NAMED_KEYS)('a value under the name %s is found', (name, make) => {
  for (const around of AROUND_NAMED) {
    const key = make(d)
    const text = around(name, key)
    const start = text.indexOf(key)
    expect(findPii(text, SECRETS), text).toMatchObject([{ start }])
  }
})

describe('no secret is told in', () => {
  test.each(NO_KEYS.map((make) => [make(d)]))('%s', (text) => expect(findPii(text, SECRETS)).toEqual([]))
})

test('what may only be a secret is masked in logs all the same', () => {
  for (const text of [
    'ghp_xxxxxxxxxxxxxxxxxxxx',
    'id AKIAIOSFODNN7EXAMPLE',
    'password=hunter2',
    'eyJhbGciOiJ.eyJzdWIi',
  ]) {
    expect(findPii(text, SECRETS)).toEqual([])
    expect(redactText(text)).toContain('[redacted]')
  }
})

test('a token without an algorithm in its header is no JSON Web Token', () => {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const token = (header: unknown) => `${part(header)}.${part({ sub: 1 })}.c2lnbmF0dXJl`
  expect(findPii(token({ alg: 'HS256' }), SECRETS)).toMatchObject([{ kind: 'jwt', start: 0 }])
  expect(findPii(token({ nope: 1 }), SECRETS)).toEqual([])
})
