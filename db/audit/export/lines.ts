import * as v from 'valibot'

/** The name of the format, which the first line of an export says. */
export const AUDIT_EXPORT_FORMAT = 'perdure-audit-export-v1'

const seq = v.pipe(v.number(), v.safeInteger(), v.minValue(1))
const hex = (bytes: number) => v.pipe(v.string(), v.regex(new RegExp(`^[\\da-f]{${bytes * 2}}$`)))
const hash = hex(32)
const uuid = v.pipe(v.string(), v.regex(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/))
const time = v.pipe(v.string(), v.regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/))
const keyId = v.pipe(v.string(), v.maxLength(200))
const signature = v.pipe(v.string(), v.regex(/^[A-Za-z\d+/]{85}[AQgw]==$/))

/** The first line: whose export it is, of which entries, and the keys with which its signatures are made. */
const Header = v.strictObject({
  type: v.literal('header'),
  format: v.literal(AUDIT_EXPORT_FORMAT),
  teamId: uuid,
  exportedAt: time,
  /** The numbers that were asked for; `to` is null for all up to the last checkpoint. */
  from: seq,
  to: v.nullable(seq),
  keys: v.pipe(
    v.array(
      v.strictObject({
        keyId,
        algorithm: v.literal('Ed25519'),
        publicKey: v.pipe(v.string(), v.maxLength(500)),
        current: v.boolean(),
      }),
    ),
    v.maxLength(1_000),
  ),
})

/** The signed facts of a purge. Anchors follow the header. */
const Anchor = v.strictObject({
  type: v.literal('anchor'),
  teamId: uuid,
  baseSeq: seq,
  baseHash: hash,
  baseTs: time,
  purgeSeq: seq,
  cutoff: time,
  breaks: v.string(),
  createdAt: time,
  keyId,
  signature,
})

/** `core` and `details` are the texts that are hashed; `details` and `salt` are null where they were erased. */
const Entry = v.strictObject({
  type: v.literal('entry'),
  seq,
  ts: time,
  prev: hash,
  hash,
  salt: v.nullable(hex(16)),
  core: v.string(),
  details: v.nullable(v.string()),
})

/** Each comes behind the entry that it is about, or before the first one. */
const CheckpointLine = v.strictObject({
  type: v.literal('checkpoint'),
  teamId: uuid,
  seq,
  hash,
  at: time,
  keyId,
  signature,
})

/** The last line: without it, the file is not complete. */
const End = v.strictObject({
  type: v.literal('end'),
  entries: v.pipe(v.number(), v.safeInteger(), v.minValue(0)),
  last: v.nullable(v.strictObject({ seq, hash })),
})

const Line = v.variant('type', [Header, Anchor, Entry, CheckpointLine, End])

export type ExportLine = v.InferOutput<typeof Line>
export type ExportHeader = v.InferOutput<typeof Header>
export type ExportAnchor = v.InferOutput<typeof Anchor>
export type ExportEntry = v.InferOutput<typeof Entry>
export type ExportCheckpoint = v.InferOutput<typeof CheckpointLine>
export type ExportEnd = v.InferOutput<typeof End>

/** A line as exports have it, with its line break. The order of the keys is that of the schemas. */
export function writeExportLine(line: ExportLine): string {
  return `${JSON.stringify(line)}\n`
}

/**
 * Reads a line, without its line break. It must be written exactly as `writeExportLine` does it, so that it means the
 * same to every reader: no key twice, no number that another one rounds to. Returns undefined for anything else.
 */
export function readExportLine(text: string): ExportLine | undefined {
  try {
    const read = v.safeParse(Line, JSON.parse(text))
    return read.success && JSON.stringify(read.output) === text ? read.output : undefined
  } catch {
    return undefined
  }
}
