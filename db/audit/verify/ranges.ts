import { hash } from 'node:crypto'
import pg from 'pg'
import { type Keys, purposeKey } from '../../seal.ts'
import { addSeq, LASTING_ACTIONS, type SeqSpan } from '../erasure/erasures.ts'
import { timeTextOf } from '../times.ts'

/** A part of a chain whose numbers have no gaps: from `from` to `to`, both inclusive, as `snapshot` shows it. */
export type ChainRange = { teamId: string; from: number; to: number; snapshot: string }

/**
 * What a range was found to be. `clean`: all of its entries are there, agree with their hashes and signatures, and link
 * to each other. If it is not, nothing is known but that.
 */
export type RangeResult =
  | { clean: false }
  | {
      clean: true
      entries: number
      /** What the first entry links to, and the last one with its hash, hexadecimal. */
      prev: string
      last: { seq: number; hash: string; tsText: string; action: string }
      firstTs: string
      /** Entries without details. Others must say that they were erased. */
      blank: SeqSpan[]
    }

/** Numbers and times as text: what is compared is what is hashed. */
const COLUMNS = `id = event_id, seq, prev, hash, ${timeTextOf('ts')}, event_id,
  actor_kind, actor_id, actor_role, actor_name, action, resource_type, resource_id, outcome, request_id, src_ip,
  details::text, details_salt, details_sha256, core, mac, key_id, v, user_id, user_agent, access_id`

type EntryRow = [
  isItsOwn: string,
  seq: string,
  prev: string,
  hash: string,
  ts: string,
  eventId: string,
  actorKind: string,
  actorId: string | null,
  actorRole: string | null,
  actorName: string | null,
  action: string,
  resourceType: string,
  resourceId: string | null,
  outcome: string,
  requestId: string | null,
  srcIp: string | null,
  details: string | null,
  salt: string | null,
  sha256: string,
  core: string,
  mac: string | null,
  keyId: string | null,
  v: string,
  userId: string | null,
  userAgent: string | null,
  accessId: string | null,
]

/**
 * Checks a range as fast as it can be read: the rows stream by, and each is judged at once. It looks at the same as
 * findFault and isEntrySigned do, and tells only whether all is well; what is wrong is for them to say.
 */
export async function checkRange(url: string, keys: Keys, range: ChainRange): Promise<RangeResult> {
  const { teamId, from, to, snapshot } = range
  const client = new pg.Client({ connectionString: url, application_name: 'perdure audit' })
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query('begin isolation level repeatable read read only')
    // A snapshot's name is not a parameter; PostgreSQL has made it.
    await client.query(`set transaction snapshot ${client.escapeLiteral(snapshot)}`)
    const judge = createJudge(keys, teamId, from)
    const found = await stream(
      client,
      `select ${COLUMNS} from audit_entries where team_id = $1 and seq >= $2 and seq <= $3 order by seq`,
      [teamId, from, to],
      judge.take,
    )
    const result = found && judge.end()
    return result && result.last.seq === to ? result : { clean: false }
  } finally {
    await client.end()
  }
}

/** Gives each row to `take` until that returns false; resolves to whether it has taken all. */
function stream(
  client: pg.Client,
  text: string,
  values: unknown[],
  take: (row: EntryRow) => boolean,
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const config = { text, values, rowMode: 'array', types: { getTypeParser: () => asText } }
    const query = new pg.Query(config as never)
    let good = true
    query.on('row', (row) => {
      good &&= take(row as unknown as EntryRow)
    })
    query.on('end', () => resolve(good))
    query.on('error', reject)
    client.query(query)
  })
}

const asText = (text: string) => text

const TS_CHARS = 24
const SALT_HEX = 2 + 32
const HASH_HEX = 2 + 64

function createJudge(keys: Keys, teamId: string, from: number) {
  const macs = new Map<string, (text: string) => string>()
  const link = Buffer.alloc(8 + 32 + 8 + TS_CHARS + 32)
  link.write('audit-v1', 0, 'latin1')
  let bytes = Buffer.alloc(65_536)
  const beginOf = `entry|${teamId}|`
  let seq = from
  let first: { prev: string; ts: string } | undefined
  let last: EntryRow | undefined
  const blank: SeqSpan[] = []
  const quote = createQuotes()

  /** SHA-256 of the salt and a text, hexadecimal. */
  function hashSalted(salt: string, text: string): string {
    // A UTF-16 unit takes three bytes at most.
    if (bytes.length < 16 + text.length * 3) bytes = Buffer.alloc(16 + text.length * 3)
    bytes.write(salt.slice(2), 0, 'hex')
    return hash('sha256', bytes.subarray(0, 16 + bytes.write(text, 16)), 'hex')
  }

  function sign(keyId: string, text: string): string | undefined {
    let mac = macs.get(keyId)
    if (!mac) {
      if (!keys.byId.has(keyId)) return undefined
      mac = createMac(purposeKey(keys, 'audit', keyId).export())
      macs.set(keyId, mac)
    }
    return mac(text)
  }

  function take(row: EntryRow): boolean {
    const [isItsOwn, seqText, prev, hashed, ts, eventId, actorKind, actorId, actorRole, actorName, action] =
      row
    if (seqText !== String(seq) || isItsOwn !== 't' || ts.length !== TS_CHARS) return false
    if (last ? prev !== last[3] : prev.length !== HASH_HEX) return false
    const [resourceType, resourceId, outcome, requestId, srcIp] = [
      row[11],
      row[12],
      row[13],
      row[14],
      row[15],
    ]
    const [details, salt, sha256, core, mac, keyId] = [row[16], row[17], row[18], row[19], row[20], row[21]]
    const [v, userId, userAgent, accessId] = [row[22], row[23], row[24], row[25]]
    const isOld = v === '1'
    if (isOld ? userId !== null || userAgent !== null || accessId !== null : v !== '2') return false
    if (mac === null || keyId === null) return false
    if (details === null || salt === null) {
      if (isOld || LASTING_ACTIONS.includes(action)) return false
      if ([actorName, srcIp, userAgent, details, salt].some((value) => value !== null)) return false
      addSeq(blank, seq)
    } else {
      const begin = `{"actor_name":${quote(0, actorName)},"details":${details}`
      const personal = isOld
        ? `${begin}}`
        : `${begin},"src_ip":${quote(1, srcIp)},"user_agent":${quote(2, userAgent)}}`
      if (salt.length !== SALT_HEX || sha256.slice(2) !== hashSalted(salt, personal)) return false
    }
    const actor = `{"id":${plain(actorId)},"kind":${quote(3, actorKind)},"role":${quote(4, actorRole)}`
    const middle = `"details_sha256":"${sha256.slice(2)}","event_id":"${eventId}","outcome":${quote(5, outcome)},"request_id":${quote(6, requestId)},"resource":{"id":${plain(resourceId)},"type":${quote(7, resourceType)}}`
    const text = isOld
      ? `{"action":${quote(8, action)},"actor":${actor}},${middle},"src_ip":${quote(1, srcIp)},"team":"${teamId}","v":1}`
      : `{"access":${plain(accessId)},"action":${quote(8, action)},"actor":${actor},"user":${plain(userId)}},${middle},"team":"${teamId}","v":2}`
    if (text !== core) return false
    const coreHash = hash('sha256', text, 'hex')
    link.write(prev.slice(2), 8, 'hex')
    link.writeUInt32BE(Math.floor(seq / 2 ** 32), 40)
    link.writeUInt32BE(seq >>> 0, 44)
    link.write(ts, 48, 'latin1')
    link.write(coreHash, 72, 'hex')
    if (hashed.slice(2) !== hash('sha256', link, 'hex')) return false
    if (mac.slice(2) !== sign(keyId, `${beginOf}${seqText}|${ts}|${coreHash}`)) return false
    first ??= { prev, ts }
    last = row
    seq++
    return true
  }

  function end(): Extract<RangeResult, { clean: true }> | undefined {
    if (!first || !last) return undefined
    const entry = { seq: seq - 1, hash: last[3].slice(2), tsText: last[4], action: last[10] }
    const found = { prev: first.prev.slice(2), last: entry, firstTs: first.ts, blank }
    return { clean: true, entries: seq - from, ...found }
  }

  return { take, end }
}

/**
 * Texts as JSON, with the last one of each place kept: most of what entries say is the same as in the one before, and
 * to compare it is much faster than to write it again.
 */
function createQuotes(): (place: number, text: string | null) => string {
  const texts: (string | null | undefined)[] = []
  const quoted: string[] = []
  return (place, text) => {
    if (texts[place] !== text) {
      texts[place] = text
      quoted[place] = JSON.stringify(text)
    }
    return quoted[place]!
  }
}

/** HMAC-SHA-256 of short texts, hexadecimal: twice as fast as createHmac, which is made anew for each. */
function createMac(key: Buffer): (text: string) => string {
  const inner = Buffer.alloc(64 + 512)
  const outer = Buffer.alloc(64 + 32)
  for (let i = 0; i < 64; i++) {
    inner[i] = (key[i] ?? 0) ^ 0x36
    outer[i] = (key[i] ?? 0) ^ 0x5c
  }
  return (text) => {
    const length = inner.write(text, 64)
    outer.write(hash('sha256', inner.subarray(0, 64 + length), 'hex'), 64, 'hex')
    return hash('sha256', outer, 'hex')
  }
}

/** Writes a UUID as PostgreSQL does, which never has to escape one. */
const plain = (uuid: string | null): string => (uuid === null ? 'null' : `"${uuid}"`)
