import { setImmediate as nextRound } from 'node:timers/promises'
import { Fault, invalid } from '../db/fault.ts'

/** A piece of so many bytes is looked through, or of at least so many parsed, before others have their turn. */
const SLICE_BYTES = 256 * 1024

/** The most bytes of one member of the body, or of one entry of a list in it: it is parsed at once. */
const MOST_PIECE = 1_500_000

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPENING = new Set([0x7b, 0x5b])
const CLOSING = new Set([0x7d, 0x5d])
const BRACKET = 0x5b

/** Where a member of the body lies. `entries` are those of a list. */
type Member = { key: [number, number]; value: [number, number]; entries: [number, number][] | null }

/**
 * Parses a JSON object of many bytes in pieces, each of which `parse` parses, so that others have their turn in between:
 * its members, and the entries of those that are lists. Throws INVALID if it is no object, and TOO_LARGE if a piece is.
 */
export async function parseInPieces(
  bytes: Uint8Array<ArrayBuffer>,
  parse: (bytes: Uint8Array<ArrayBuffer>) => unknown,
): Promise<Record<string, unknown>> {
  const members = await findMembers(bytes)
  const body: [string, unknown][] = []
  let parsed = 0
  const read = async ([from, to]: [number, number]): Promise<unknown> => {
    if (to - from > MOST_PIECE)
      throw new Fault('TOO_LARGE', `A part of the body must have at most ${MOST_PIECE} bytes`)
    parsed += to - from + 64
    if (parsed > SLICE_BYTES) {
      await nextRound()
      parsed = 0
    }
    return parse(bytes.subarray(from, to))
  }
  for (const { key, value, entries } of members) {
    const name = await read(key)
    if (typeof name !== 'string') throw notJson()
    if (name === '__proto__') throw invalid([{ path: name, message: 'is not allowed as a key' }])
    if (!entries) body.push([name, await read(value)])
    else {
      const list: unknown[] = []
      for (const entry of entries) list.push(await read(entry))
      body.push([name, list])
    }
  }
  return Object.fromEntries(body)
}

async function findMembers(bytes: Uint8Array): Promise<Member[]> {
  const members: Member[] = []
  let depth = 0
  let quoted = false
  let from = 0
  let key: [number, number] | undefined
  let entries: [number, number][] | null = null
  let entry = 0
  let ended = false
  const endMember = (to: number) => {
    if (!key) {
      // An object may be empty, but not end with a comma.
      if (members.length > 0 || !isBlank(bytes, from, to)) throw notJson()
      return
    }
    members.push({ key, value: [from, to], entries })
    key = undefined
    entries = null
  }
  for (let at = 0; at < bytes.length; at++) {
    if (at % SLICE_BYTES === SLICE_BYTES - 1) await nextRound()
    const byte = bytes[at]!
    if (quoted) {
      if (byte === BACKSLASH) at++
      else if (byte === QUOTE) quoted = false
      continue
    }
    if (byte === QUOTE) quoted = true
    else if (OPENING.has(byte)) {
      if (depth === 0 && (ended || byte === BRACKET || !isBlank(bytes, from, at))) throw notJson()
      if (depth === 0) from = at + 1
      // Only white space may precede a list.
      if (depth === 1 && byte === BRACKET && key && isBlank(bytes, from, at)) {
        entries = []
        entry = at + 1
      }
      depth++
    } else if (CLOSING.has(byte)) {
      depth--
      if (depth < 0) throw notJson()
      if (depth === 1 && entries) {
        if (byte !== BRACKET + 2) throw notJson()
        if (entries.length > 0 || !isBlank(bytes, entry, at)) entries.push([entry, at])
        entry = -1
      }
      if (depth === 0) {
        if (byte === BRACKET + 2) throw notJson()
        checkRest(bytes, entries, at)
        endMember(at)
        ended = true
        from = at + 1
      }
    } else if (byte === COLON && depth === 1 && !key) {
      key = [from, at]
      from = at + 1
    } else if (byte === COMMA && depth === 1) {
      if (!key) throw notJson()
      checkRest(bytes, entries, at)
      endMember(at)
      from = at + 1
    } else if (byte === COMMA && depth === 2 && entries && entry >= 0) {
      entries.push([entry, at])
      entry = at + 1
    }
  }
  if (!ended || depth !== 0 || quoted || !isBlank(bytes, from, bytes.length)) throw notJson()
  return members
}

/** After a list there must be nothing up to the next member. */
function checkRest(bytes: Uint8Array, entries: unknown[] | null, to: number): void {
  if (!entries) return
  let at = to - 1
  while (at >= 0 && isSpace(bytes[at]!)) at--
  if (bytes[at] !== BRACKET + 2) throw notJson()
}

const isSpace = (byte: number) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

function isBlank(bytes: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (!isSpace(bytes[at]!)) return false
  return true
}

const notJson = () => invalid([{ path: 'body', message: 'must be valid JSON in UTF-8' }])
