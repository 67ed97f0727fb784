import { createHash } from 'node:crypto'
import { LASTING_ACTIONS } from '../erasure/erasures.ts'
import { type AuditCore, canonicalCore, hashLink } from '../signing.ts'
import type { ExportEntry } from './lines.ts'

/** What an entry of an export says, as far as a verification needs it. */
type ReadEntry = { action: string; blank: boolean; details: unknown }

/** The fault of a single entry, or its content. */
export type JudgedEntry = ({ fault: string } & Partial<ReadEntry>) | ({ fault?: undefined } & ReadEntry)

/** Checks the hashes of an entry, and that it is one of the team's, written as the service writes it. */
export function judgeExportEntry(teamId: string, line: ExportEntry): JudgedEntry {
  const { seq, ts, hash, core, details, salt } = line
  const prev = Buffer.from(line.prev, 'hex')
  if (hashLink({ teamId, seq, prev, ts, core }).toString('hex') !== hash)
    return { fault: `Entry ${seq} does not match its hash` }
  const read = readCore(core)
  if (!read) return { fault: `Entry ${seq} is not written as the service writes entries` }
  if (read.teamId !== teamId) return { fault: `Entry ${seq} is one of another team` }
  const { action, v } = read
  if (details === null || salt === null) {
    if (details === null && salt === null && v === 2 && !LASTING_ACTIONS.includes(action))
      return { action, blank: true, details: undefined }
    return { fault: `The details of entry ${seq} are missing` }
  }
  const found = createHash('sha256').update(Buffer.from(salt, 'hex')).update(details).digest()
  if (!found.equals(read.detailsSha256))
    return { fault: `The details of entry ${seq} do not match their hash` }
  // Only of few actions the details are looked at: the others may be anything.
  const parsed = LASTING_ACTIONS.includes(action) ? readDetails(details) : undefined
  return { action, blank: false, details: parsed }
}

/** Reads the text of a core; undefined if it is not exactly what the service writes. */
function readCore(text: string): AuditCore | undefined {
  try {
    const { v, team, event_id, actor, access, action, resource, outcome, ...rest } = JSON.parse(text)
    const { request_id, src_ip = null, details_sha256 } = rest
    const core: AuditCore = {
      ...{ v, teamId: team, eventId: event_id, action, outcome, requestId: request_id, srcIp: src_ip },
      ...{ actorKind: actor.kind, actorId: actor.id, actorRole: actor.role },
      ...{ userId: actor.user ?? null, accessId: access ?? null },
      ...{ resourceType: resource.type, resourceId: resource.id },
      detailsSha256: Buffer.from(details_sha256, 'hex'),
    }
    if (v !== 1 && v !== 2) return undefined
    if (![team, event_id, action, actor.kind].every((part) => typeof part === 'string')) return undefined
    return canonicalCore(core) === text ? core : undefined
  } catch {
    return undefined
  }
}

function readDetails(text: string): unknown {
  try {
    return JSON.parse(text)?.details
  } catch {
    return undefined
  }
}
