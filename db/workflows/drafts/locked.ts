import type { Tx } from '../../connection.ts'
import type { Store } from '../../scope.ts'
import { readSettings } from '../settings.ts'
import { readStoredVersion, type StoredVersion } from '../versions.ts'
import { lockWorkflow } from '../workflows.ts'
import { demandTag, type ShownWorkflow } from './tags.ts'

/** A workflow that is locked, as it is published and as its draft is; `version` of each is its number. */
export type LockedWorkflow = {
  tx: Tx
  /** That of the transaction. */
  store: Store
  teamId: string
  published: LockedVersion
  draft: LockedVersion | undefined
  /** The number of the next version, which no version has ever had. */
  next: number
}

type LockedVersion = { stored: StoredVersion; shown: Shown }
type Shown = ShownWorkflow & { teamId: string; createdAt: Date }

/** Locks a workflow and reads both versions. Throws NOT_FOUND. */
export async function lockVersions(from: Store, tx: Tx, id: string): Promise<LockedWorkflow> {
  const { lastDraft, settings, ...row } = await lockWorkflow(tx, id)
  const store = { ...from, db: tx }
  const base = { ...row, publishedVersion: row.version }
  const stored = await readStoredVersion(store, id, row.version)
  const shown = { ...base, settings: readSettings(settings, stored.graph) }
  const found = row.draftVersion === null ? undefined : await readStoredVersion(store, id, row.draftVersion)
  const draft = found && {
    stored: found,
    shown: {
      ...base,
      version: row.draftVersion!,
      settings: { ...readSettings(settings, found.graph), notes: found.notes },
    },
  }
  const next = Math.max(row.version, lastDraft ?? 0) + 1
  return { tx, store, teamId: row.teamId, published: { stored, shown }, draft, next }
}

/** Throws PRECONDITION_FAILED unless `expected` has the tag of what is to be changed of the workflow: see demandTag. */
export function demandState(
  { published, draft }: LockedWorkflow,
  expected: string[] | undefined,
  changed: 'published' | 'draft',
): void {
  demandTag(expected, published.shown, draft?.shown, changed)
}
