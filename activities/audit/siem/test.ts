import { randomUUID } from 'node:crypto'
import type { AuditEntryView } from '../../../db/audit/list.ts'
import type { Forwarder } from '../../../db/audit/siem/forwarders.ts'
import { deliverEntries, type SiemCarrier } from './deliver.ts'

/** The result of a test, in words without secrets. */
export type ForwarderTest = { status: 'SUCCESS' | 'FAILED'; message: string }

/** Sends one event that is no entry to where a forwarder sends. Never throws. */
export async function testForwarder(
  carrier: SiemCarrier,
  forwarder: Forwarder,
  signal: AbortSignal,
): Promise<ForwarderTest> {
  try {
    await deliverEntries(carrier, forwarder.teamId, forwarder, [makeTestEntry(forwarder)], signal)
    return { status: 'SUCCESS', message: 'The receiver has taken one event' }
  } catch (error) {
    return { status: 'FAILED', message: (error as Error).message }
  }
}

const NO_HASH = '0'.repeat(64)

function makeTestEntry({ id, teamId, name }: Forwarder): AuditEntryView {
  return {
    id: randomUUID(),
    teamId,
    userId: null,
    userName: 'test of an audit forwarder',
    action: 'AUDIT_FORWARDER_TESTED',
    resourceType: 'AUDIT_FORWARDER',
    resourceId: id,
    details: { test: true, name },
    createdAt: new Date(),
    seq: 0,
    outcome: 'SUCCESS',
    actor: { kind: 'SYSTEM', id: null, role: null },
    ip: null,
    userAgent: null,
    requestId: null,
    hash: NO_HASH,
    prevHash: NO_HASH,
  }
}
