import type { AuditEntryView } from '../../../../db/audit/list.ts'

/** What breaks formats that escape wrongly. */
const FRAGMENTS = [
  'x suser=root act=delete',
  'end\\',
  'a\\=b',
  'a=b',
  'a|b',
  '\\n',
  '\\|',
  '\n',
  '\r\n',
  '\r',
  '\n\n',
  '\t',
  '"',
  '\\"',
  ']',
  '"] [forged@32473 seq="1"',
  '[perdure@32473 seq="1"]',
  'CEF:0|Evil|Evil|1|1|forged|10|',
  '<110>1 2026-01-01T00:00:00.000Z evil perdure - FORGED - ',
  '12 <110>1 -',
  '%n%s$!all-json',
  '#012',
  '{"a":1}',
  "it's",
  ' ',
  '  ',
  '=',
  '\\',
  '\\\\',
  ' = ',
  'msg=',
  'é',
  '😀',
  '👩‍👩‍👧',
  'שלום',
  '\u2028',
  '\u0085',
  '\u00a0',
  '\ufeff',
  '\u001b[31m',
  '\u0001',
  '\u007f',
  '日本語',
  'ordinary',
  'name',
  '0',
]

/** Makes entries whose texts are hostile, as the database can hold them: the same ones for the same seed. */
export function makeHostileEntries(count: number, seed = 20_261_123): AuditEntryView[] {
  const random = createRandom(seed)
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!
  const text = (most = 6): string =>
    Array.from({ length: 1 + Math.floor(random() * most) }, () => pick(FRAGMENTS)).join(pick(['', ' ', '']))
  const hex = (length: number) =>
    Array.from({ length }, () => Math.floor(random() * 16).toString(16)).join('')
  const uuid = () => `${hex(8)}-${hex(4)}-7${hex(3)}-8${hex(3)}-${hex(12)}`
  const maybe = <T>(value: T): T | null => (random() < 0.2 ? null : value)
  return Array.from({ length: count }, (_, at) => ({
    id: uuid(),
    teamId: uuid(),
    userId: maybe(uuid()),
    userName: maybe(text()),
    action:
      random() < 0.05 ? text(2).slice(0, 31) : pick(['WORKFLOW_CREATED', 'SIGN_IN_FAILED', 'AUDIT_REOPENED']),
    resourceType: pick(['WORKFLOW', 'MEMBER', text(2)]),
    resourceId: maybe(uuid()),
    details: random() < 0.9 ? { [text(2)]: text(), list: [text(), at, null, true] } : {},
    createdAt: new Date(1_780_000_000_000 + at),
    seq: at + 1,
    outcome: pick(['SUCCESS', 'FAILURE', 'DENIED']),
    actor: { kind: pick(['USER', 'SDK_TOKEN']), id: maybe(uuid()), role: maybe('ADMIN') },
    ip: maybe(pick(['203.0.113.7', '2001:db8::7', 'unknown "]'])),
    userAgent: maybe(random() < 0.02 ? `${'ä'.repeat(499)}${pick(['\\', '=', '"'])}` : text(10)),
    requestId: maybe(text(3)),
    hash: hex(64),
    prevHash: hex(64),
  }))
}

/** mulberry32 */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}
